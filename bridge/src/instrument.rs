//! Compiles a template and puts budget checks between its steps.
//!
//! minijinja's fuel bounds the number of steps, but one step can double a string, repeat it a
//! hundred million times or build a list inside a list. So after every step that can grow something
//! its result is checked, steps that can grow without bound are replaced by bounded ones of ours,
//! and every loop round looks at memory and clock. A template cannot reach or shadow the names of
//! the checks: no identifier holds a NUL.

use std::collections::BTreeMap;

use minijinja::machinery::{
    parse, tokenize, CodeGenerator, Instruction, Instructions, Token, WhitespaceConfig,
};
use minijinja::{Error, ErrorKind};

pub const CHECK: &str = "\0check";
pub const TICK: &str = "\0tick";
pub const STORE: &str = "\0store";
pub const MUL: &str = "\0mul";
pub const CONCAT: &str = "\0concat";
pub const CHANGED: &str = "\0changed";

const NAME: &str = "chat template";
/// Expressions are parsed and compiled recursively along chains such as a + b + c + ….
const MAX_TAG_TOKENS: usize = 1500;
/// Constant folding tries every such chain at every link, which costs the square of its length.
const MAX_SQUARED_TAG_TOKENS: usize = 30_000_000;
/// Each elif nests one level deeper in the parser, which does not count them.
const MAX_ELIFS: usize = 500;
/// A model's template has nothing to include, and no parent to fill the blocks of.
const REFUSED_TAGS: [&str; 5] = ["block", "extends", "from", "import", "include"];
/// Constant expressions are evaluated while compiling, before any budget holds.
const MAX_CONSTANT_BYTES: u128 = 1 << 20;

pub struct Program<'source> {
    pub instructions: Instructions<'source>,
    pub blocks: BTreeMap<&'source str, Instructions<'source>>,
}

fn whitespace() -> WhitespaceConfig {
    // What transformers sets for chat templates.
    WhitespaceConfig {
        keep_trailing_newline: false,
        lstrip_blocks: true,
        trim_blocks: true,
    }
}

pub fn compile(source: &str) -> Result<Program<'_>, Error> {
    check_tags(source)?;
    let tree = parse(source, NAME, Default::default(), whitespace())?;
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&tree);
    let (instructions, blocks) = generator.finish();
    Ok(Program {
        instructions: add_checks(&instructions),
        blocks,
    })
}

/// What one `{{ … }}` or `{% … %}` holds, as far as the limits care.
#[derive(Default)]
struct Tag {
    tokens: usize,
    multiplications: u32,
    powers: u32,
    largest_number: u128,
    constant_bytes: u128, // of string literals and list items
}

impl Tag {
    fn take(&mut self, token: &Token<'_>) {
        self.tokens += 1;
        match token {
            Token::Mul => self.multiplications += 1,
            Token::Pow => self.powers += 1,
            Token::Int(n) => self.largest_number = self.largest_number.max(u128::from(*n)),
            Token::Int128(n) => self.largest_number = self.largest_number.max(**n),
            Token::Str(s) => self.constant_bytes += s.len() as u128,
            Token::String(s) => self.constant_bytes += s.len() as u128,
            Token::BracketOpen | Token::Comma => self.constant_bytes += 1,
            _ => {}
        }
    }

    /// An upper bound of what constant folding can build: everything repeated by every product.
    fn folded_bytes(&self) -> u128 {
        if self.multiplications == 0 {
            return self.constant_bytes;
        }
        let number = self.largest_number.max(2);
        let power = match u32::try_from(number) {
            Ok(exponent) if self.powers > 0 => number.saturating_pow(exponent),
            _ => number,
        };
        let factor = power
            .saturating_pow(self.powers)
            .saturating_mul(number.saturating_pow(self.multiplications));
        self.constant_bytes.saturating_mul(factor)
    }
}

fn check_tags(source: &str) -> Result<(), Error> {
    let mut tag = Tag::default();
    let mut squared_tokens = 0;
    let mut elifs = 0;
    let mut in_block = false;
    for item in tokenize(source, false, Default::default(), whitespace()) {
        let Ok((token, span)) = item else {
            return Ok(()); // the parser will say it better
        };
        let refuse = |what: String| {
            let message = format!("line {}: {what}", span.start_line);
            Err(Error::new(ErrorKind::SyntaxError, message))
        };
        match &token {
            Token::VariableStart | Token::BlockStart => {
                squared_tokens += tag.tokens * tag.tokens;
                tag = Tag::default();
                in_block = matches!(token, Token::BlockStart);
            }
            Token::Ident("elif") if in_block && tag.tokens == 0 => elifs += 1,
            Token::Ident(name) if in_block && tag.tokens == 0 && REFUSED_TAGS.contains(name) => {
                return refuse(format!("the tag {name} has no place in a chat template"));
            }
            _ => {}
        }
        if !matches!(
            token,
            Token::TemplateData(_) | Token::BlockStart | Token::VariableStart
        ) {
            tag.take(&token);
        }
        if tag.tokens > MAX_TAG_TOKENS {
            return refuse(format!("one tag has more than {MAX_TAG_TOKENS} parts"));
        }
        if squared_tokens > MAX_SQUARED_TAG_TOKENS {
            return refuse("too many long tags".to_string());
        }
        if elifs > MAX_ELIFS {
            return refuse(format!("more than {MAX_ELIFS} elif"));
        }
        if tag.multiplications > 0 && tag.folded_bytes() > MAX_CONSTANT_BYTES {
            return refuse(format!(
                "a constant expression larger than {MAX_CONSTANT_BYTES} bytes"
            ));
        }
    }
    Ok(())
}

/// The steps that stand for one step of minijinja's.
fn with_checks<'s>(step: &Instruction<'s>) -> Vec<Instruction<'s>> {
    use Instruction as I;
    let step = step.clone();
    let check = || I::CallFunction(CHECK, Some(1));
    let tick = || I::CallFunction(TICK, Some(0));
    match step {
        // Bounded ones of ours.
        I::Mul => vec![I::CallFunction(MUL, Some(2)), check()],
        I::StringConcat => vec![I::CallFunction(CONCAT, Some(2)), check()],
        I::CallMethod("changed", count) => vec![I::CallFunction(CHANGED, count), check()],
        // The result on the stack is checked, and made a plain list where it is a lazy one.
        I::Add | I::Slice | I::BuildMap(_) | I::BuildList(_) | I::ApplyFilter(..) => {
            vec![step, check()]
        }
        I::CallFunction(..) | I::CallMethod(..) | I::CallObject(_) | I::EndCapture => {
            vec![step, check()]
        }
        // On the stack: the value, then the namespace on top of it.
        I::SetAttr(_) => vec![I::Swap, I::CallFunction(STORE, Some(1)), I::Swap, step],
        // No result to check, but time passes or output grows.
        I::EmitRaw(_) | I::Emit | I::Iterate(_) | I::PerformTest(..) => {
            vec![step, tick(), I::DiscardTop]
        }
        I::Eq | I::Ne | I::Gt | I::Gte | I::Lt | I::Lte | I::In | I::CompareAndPreserve(_) => {
            vec![step, tick(), I::DiscardTop]
        }
        _ => vec![step],
    }
}

fn retarget(step: &mut Instruction<'_>, starts: &[u32]) {
    use Instruction as I;
    match step {
        I::Iterate(target)
        | I::Jump(target)
        | I::JumpIfFalse(target)
        | I::JumpIfFalseOrPop(target)
        | I::JumpIfTrueOrPop(target)
        | I::BuildMacro(_, target, _) => *target = starts[*target as usize],
        _ => {}
    }
}

fn add_checks<'s>(old: &Instructions<'s>) -> Instructions<'s> {
    let count = old.len() as u32;
    let groups: Vec<_> = (0..count)
        .filter_map(|i| old.get(i))
        .map(with_checks)
        .collect();
    // starts[i]: where step i begins now; one more for jumps to the end.
    let mut starts = vec![0u32];
    for group in &groups {
        starts.push(starts[starts.len() - 1] + group.len() as u32);
    }
    let mut new = Instructions::new(old.name(), old.source());
    for (i, group) in groups.into_iter().enumerate() {
        let line = old.get_line(i as u32);
        for mut step in group {
            retarget(&mut step, &starts);
            match line {
                Some(line) => new.add_with_line(step, line as u16),
                None => new.add(step),
            };
        }
    }
    new
}
