package schemafile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder makes a system folder; a nil value makes a subfolder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	big := "{" + strings.Repeat(" ", MaxBytes-2) + "}"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // the schema file's name; "" for none
		rule  Rule
		says  []string
	}{
		{name: "nothing"},
		{name: "no schema", files: map[string]string{"10-role.md": "x", ".hidden": "x", ".schemas": "x", ".schematic.json": "{}", "#.schema-a.json#": "x", ".#.schema-a.json": "x", "..schema-a.json.AbCdEf": "x"}},
		{name: "one", files: map[string]string{"10-role.md": "x", ".schema-a.json": "{}"}, want: ".schema-a.json"},
		{name: "largest", files: map[string]string{".schema-a.json": big}, want: ".schema-a.json"},
		{name: "leftovers of an editor", files: map[string]string{".schema-a.json": "{}", ".schema-a.json~": "{", ".schema-a.json.swp": "\x00", ".schema-a.json.bak": "["}, want: ".schema-a.json"},
		{name: "only a leftover", files: map[string]string{".schema-a.json~": "{}"}, rule: RuleName, says: []string{".schema-a.json~"}},
		{name: "only a backup", files: map[string]string{".schema-a.json.bak": "{}"}, rule: RuleNoType, says: []string{".schema-a.json.bak", "'bak'"}},
		{name: "two", files: map[string]string{".schema-a.json": "{}", ".schema-b.txt@regex": "a"}, rule: RuleTwo, says: []string{".schema-a.json", ".schema-b.txt@regex", "keep one"}},
		{name: "two, one of them wrong", files: map[string]string{".schema-a.json": "{}", ".schema-b.txt": "a"}, rule: RuleTwo, says: []string{".schema-b.txt"}},
		{name: "a backup with its own type", files: map[string]string{".schema-a.json": "{}", ".schema-a-old.json": "{}"}, rule: RuleTwo},
		{name: "no type", files: map[string]string{".schema-a.txt": "a"}, rule: RuleNoType, says: []string{".schema-a.txt", "@regex"}},
		{name: "unknown type", files: map[string]string{".schema-a.txt@gbnf": "a"}, rule: RuleType, says: []string{"'gbnf'"}},
		{name: "near miss", files: map[string]string{".schema_a.json": "{}"}, rule: RuleName, says: []string{".schema_a.json", "name it"}},
		{name: "near miss in capitals", files: map[string]string{".SCHEMA-a.json": "{}"}, rule: RuleName},
		{name: "no format", files: map[string]string{".schema.json": "{}"}, rule: RuleName},
		{name: "bad JSON", files: map[string]string{".schema-a.json": "{\n \"type\": object\n}"}, rule: RuleJSON, says: []string{".schema-a.json:2:10: "}},
		{name: "an array", files: map[string]string{".schema-a.json": "[]"}, rule: RuleObject},
		{name: "true is not for files", files: map[string]string{".schema-a.json": "true"}, rule: RuleObject},
		{name: "empty", files: map[string]string{".schema-a.txt@regex": "\n"}, rule: RuleEmpty},
		{name: "not UTF-8", files: map[string]string{".schema-a.txt@lark": "start: \"\xe9\"\n"}, rule: RuleText, says: []string{".schema-a.txt@lark:1:9: ", "0xE9"}},
		{name: "too large", files: map[string]string{".schema-a.json": big + "\n"}, rule: RuleSize, says: []string{"1048577 bytes"}},
		{name: "a folder", files: map[string]string{".schema-a.json/": ""}, rule: RuleFile, says: []string{"a folder"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, tt.files)
			f, err := Find(dir)
			if rule := ruleOf(err); rule != tt.rule {
				t.Fatalf("rule %q (%v), want %q", rule, err, tt.rule)
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), dir) {
					t.Errorf("%q does not begin with the file", err)
				}
				for _, s := range tt.says {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("%q does not say %q", err, s)
					}
				}
				return
			}
			if tt.want == "" {
				if f != nil {
					t.Errorf("found %s", f.Path)
				}
				return
			}
			name, _ := Parse(tt.want)
			text := tt.files[tt.want]
			sum := sha256.Sum256([]byte(text))
			want := &File{Name: name, Path: filepath.Join(dir, tt.want), Source: []byte(text), SHA256: hex.EncodeToString(sum[:])}
			if diff := cmp.Diff(want, f, cmp.Comparer(bytes.Equal)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindFollowsChange(t *testing.T) {
	dir := t.TempDir()
	step := func(want string) {
		t.Helper()
		f, err := Find(dir)
		got := ""
		if f != nil {
			got = string(f.Kind()) + " " + string(f.Source)
		}
		if err != nil || got != want {
			t.Errorf("found %q, %v; want %q", got, err, want)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step("")
	write(".schema-a.txt@regex", "a\n")
	step("regex a")
	write(".schema-a.txt@regex", "b\n")
	step("regex b")
	if err := os.Remove(filepath.Join(dir, ".schema-a.txt@regex")); err != nil {
		t.Fatal(err)
	}
	step("")
	write(".schema-a.json", "{}")
	step("json {}")
}

func TestHashIsOfTheFile(t *testing.T) {
	text := "\uFEFFa+\r\n"
	dir := folder(t, map[string]string{".schema-a.txt@regex": text})
	f, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	if string(f.Source) != "a+" || f.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("source %q, hash %s", f.Source, f.SHA256)
	}
}

func TestWithMaxBytes(t *testing.T) {
	dir := folder(t, map[string]string{".schema-a.json": `{"a":1}`})
	if _, err := Find(dir, WithMaxBytes(6)); ruleOf(err) != RuleSize {
		t.Error(err)
	}
	if _, err := Find(dir, WithMaxBytes(7)); err != nil {
		t.Error(err)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(filepath.Join(dir, "gone")); ruleOf(err) != RuleRead || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := Read(filepath.Join(dir, ".schema-a.json")); ruleOf(err) != RuleRead || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	link := filepath.Join(dir, ".schema-link.json")
	if err := os.Symlink("gone", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); ruleOf(err) != RuleRead || !strings.Contains(err.Error(), link) {
		t.Errorf("dangling link: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".schema-link.json", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); ruleOf(err) != RuleRead {
		t.Errorf("link to itself: %v", err)
	}
	if os.Getuid() != 0 {
		locked := folder(t, map[string]string{".schema-a.json": "{}"})
		if err := os.Chmod(filepath.Join(locked, ".schema-a.json"), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(locked); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("unreadable file: %v", err)
		}
	}
}

func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, ".schema-a.json")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no named pipes here:", err)
	}
	if _, err := Find(dir); ruleOf(err) != RuleFile || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("named pipe: %v", err)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", pipe)
	if err != nil {
		t.Skip("no sockets here:", err)
	}
	defer l.Close()
	if _, err := Find(dir); ruleOf(err) != RuleFile || !strings.Contains(err.Error(), "socket") {
		t.Errorf("socket: %v", err)
	}
}

// A schema file that is saved by rename, over and over, is always found whole.
func TestFindDuringSaves(t *testing.T) {
	dir := folder(t, map[string]string{".schema-a.json": `{"n":0}`})
	path := filepath.Join(dir, ".schema-a.json")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := os.WriteFile(path+"~", []byte(`{"n":1}`), 0o644); err != nil {
				done <- err
				return
			}
			if err := os.Rename(path+"~", path); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 300 {
		if f, err := Find(dir); err != nil || f == nil {
			t.Errorf("found %v, %v", f, err)
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
