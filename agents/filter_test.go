package agents

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestIgnoredNames(t *testing.T) {
	for _, name := range []string{
		".hidden", ".x.swp", ".x.AbCd", ".#lock", ".goutputstream-1", ".nfs0001",
		"x~", "~", "4913", "x.swp", "x.swo", "X.TMP", "x.tmp", "x.temp", "x.part", "x.partial", "x.filepart",
		"x.crdownload", "x.bak", "x.backup", "x.txt.BAK", "x.orig", "x.rej", "x.old", "#x#", "~$letter.docx",
		"Thumbs.db", "desktop.ini", "x___jb_tmp___", "x___jb_old___", "bad\xffname", "new\nline", "bell\a",
	} {
		if IgnoredName(name) == "" {
			t.Errorf("%q is an input", name)
		}
	}
	for _, name := range []string{
		"x", "x.txt", "note.md", "49130", "a4913", "tmp", "part", "bak", "x.tmp.txt", "temp.txt", "#1", "#", "x#", "a~b",
		"café", "cafe\u0301", "名前.txt", " spaces ", "-dash", "$(rm)", "a b", "x.party", "x.tmpl", "old", "x.bold", strings.Repeat("n", 255),
	} {
		if reason := IgnoredName(name); reason != "" {
			t.Errorf("%q is no input: %s", name, reason)
		}
	}
}

// What a person may have meant is told without being asked for.
func TestSurprising(t *testing.T) {
	for name, want := range map[string]bool{
		".hidden": false, ".bak": false, "x~": false, "4913": false, "x.swp": false, "x.tmp": false, "x.part": false, "#x#": false,
		"~$letter.docx": false, "Thumbs.db": false, "x___jb_old___": false,
		"notes.bak": true, "NOTES.OLD": true, "x.backup": true, "x.orig": true, "x.rej": true, "bad\xffname": true, "new\nline": true,
	} {
		if got := Surprising(name, IgnoredName(name)); got != want {
			t.Errorf("%q is surprising: %v", name, got)
		}
	}
	for reason, want := range map[string]bool{"": false, isEmpty: false, "it is a folder": true, "it is a FIFO": true, "it is a link that leads nowhere": true} {
		if got := Surprising("x.txt", reason); got != want {
			t.Errorf("%q is surprising: %v", reason, got)
		}
	}
}

func TestInspect(t *testing.T) {
	root := graphOf(t, `
-- in/file --
text
-- in/empty --
-- in/folder/x --
-- in/inside -> file --
-- in/deep -> ../other/file --
-- in/twice -> deep --
-- in/out -> /etc/hostname --
-- in/up -> ../../.. --
-- in/dangling -> nothing --
-- in/loop -> loop --
-- in/linked folder -> folder --
-- in/state -> ../.agentgraph/lock --
-- .agentgraph/lock --
x
-- other/file --
text
`)
	if err := syscall.Mkfifo(filepath.Join(root, "in/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"file": "", "inside": "", "deep": "", "twice": "",
		"empty": "it is empty", "folder": "it is a folder", "linked folder": "it is a folder", "fifo": "it is a FIFO",
		"out": "it is a link that leads out of the graph", "up": "it is a link that leads out of the graph",
		"dangling": "it is a link that leads nowhere", "state": "it is a link into .agentgraph",
	} {
		info, reason, err := Inspect(root, filepath.Join(root, "in", name))
		if err != nil || reason != want || (info != nil) != (want == "") {
			t.Errorf("%s: %v, %q, %v; want %q", name, info, reason, err, want)
		}
	}
	if _, reason, _ := Inspect(root, filepath.Join(root, "in/loop")); !strings.Contains(reason, "link that cannot be followed") {
		t.Errorf("a loop of links: %q", reason)
	}
	if _, reason, err := Inspect(root, filepath.Join(root, "in/missing")); reason != "" || !os.IsNotExist(err) {
		t.Errorf("a missing file: %q, %v", reason, err)
	}
	if _, reason, _ := Inspect(root, "/dev/null"); reason != "it is a device" {
		t.Errorf("a device: %q", reason)
	}
}

// Names of 10,000 characters are refused with a message that can be read.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("n", 10000)
	for _, in := range []string{long, "../" + long + "/output", "a/" + long} {
		g := load(t, "-- agents/a/agent.yaml --\ninputs: [\""+in+"\"]\n-- agents/b/system/ --\n")
		if g.Agents[0].Err == nil || g.Agents[1].Err != nil || len(g.Agents[0].Err.Error()) > 400 {
			t.Errorf("%.20s…: %v, %v", in, g.Agents[0].Err, g.Agents[1].Err)
		}
	}
	g := load(t, "-- agents/a/agent.yaml --\n"+long+": 1\nmodel: "+long+"\n")
	for _, f := range g.Findings {
		if len(f.String()) > 11000 {
			t.Errorf("a finding of %d bytes", len(f.String()))
		}
	}
	if g.Agents[0].Err == nil {
		t.Error("an unknown key of 10,000 characters is taken")
	}
}
