// The vendor's TypeScript client against live servers.
//   node sdk_case.mjs FOLDER_OF_NODE_MODULES ALPHABET_URL CALLING_URL REAL_URL
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';

const [folder, alphabetUrl, callingUrl, realUrl] = process.argv.slice(2);
const require = createRequire(path.join(folder, 'package.json'));
const { default: Anthropic } = require('@anthropic-ai/sdk');

const clientOf = (baseURL) => new Anthropic({ baseURL, apiKey: 'none needed' });
const ask = { model: 'chain', max_tokens: 5, messages: [{ role: 'user', content: 'a' }] };
const tools = [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }];

test('create gives exact text', async () => {
  const message = await clientOf(alphabetUrl).messages.create({ ...ask, temperature: 0 });
  assert.equal(message.content[0].text, 'bcdef');
  assert.equal(message.stop_reason, 'max_tokens');
  assert.match(message._request_id, /^req_/);
});

test('raw events come in order', async () => {
  const types = [];
  for await (const event of await clientOf(alphabetUrl).messages.create({ ...ask, stream: true })) types.push(event.type);
  assert.deepEqual(types, ['message_start', 'content_block_start', ...Array(5).fill('content_block_delta'),
    'content_block_stop', 'message_delta', 'message_stop']);
});

test('the stream helper joins text and the final message', async () => {
  const texts = [];
  const stream = clientOf(alphabetUrl).messages.stream(ask).on('text', (text) => texts.push(text));
  const final = await stream.finalMessage();
  assert.deepEqual(texts, [...'bcdef']);
  assert.equal(final.content[0].text, 'bcdef');
  assert.equal(final.usage.output_tokens, 5);
});

test('a tool call is whole', async () => {
  const body = { model: 'chain', max_tokens: 64, tools, messages: [{ role: 'user', content: 'Oslo?' }] };
  const client = clientOf(callingUrl);
  for (const message of [await client.messages.create(body), await client.messages.stream(body).finalMessage()]) {
    const call = message.content.find((block) => block.type === 'tool_use');
    assert.deepEqual(call.input, { city: 'Oslo', days: 2 });
    assert.equal(call.name, 'get_weather');
    assert.equal(message.stop_reason, 'tool_use');
  }
});

test('an aborted stream ends and the next request is served', async () => {
  const client = clientOf(realUrl);
  const body = { model: 'smollm2', max_tokens: 2000, messages: [{ role: 'user', content: 'Tell a long story.' }] };
  const stream = client.messages.stream(body);
  stream.once('text', () => stream.abort());
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
  assert.ok((await client.messages.create({ ...body, max_tokens: 3 })).content.length);
});

test('errors are of their class', async () => {
  const client = clientOf(alphabetUrl);
  await assert.rejects(client.messages.create({ ...ask, model: 'other' }), (error) =>
    error instanceof Anthropic.NotFoundError && error.type === 'not_found_error' && /^req_/.test(error.requestID));
  await assert.rejects(client.messages.create({ ...ask, max_tokens: 0 }), Anthropic.BadRequestError);
  await assert.rejects(client.messages.batches.list(), Anthropic.NotFoundError);
});

test('models are paged and found, tokens counted', async () => {
  const client = clientOf(realUrl);
  const ids = [];
  for await (const model of client.models.list({ limit: 1 })) ids.push(model.id);
  assert.deepEqual(ids, ['smollm2', 'second', 'third']);
  assert.equal((await client.models.retrieve('second')).type, 'model');
  const { input_tokens } = await client.messages.countTokens({ model: 'smollm2', messages: ask.messages });
  assert.ok(input_tokens > 0);
});
