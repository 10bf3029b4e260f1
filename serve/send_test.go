package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/record"
	"agentgraph/runner"
)

// graphFiles is a graph of an agent that answers and one that reads its
// answers.
var graphFiles = []string{
	"agentgraph.yaml", "models:\n  fake: {script: fake.yaml}\ndefaults: {model: fake}\nsettle: 10ms\n",
	"fake.yaml", "constraints: none\nreplies:\n  - {match: slow, text: in the end, token_delay: 300ms}\n  - {match: broken, error: {kind: failed, message: out of paper}}\ndefault: {text: good morning}\n",
	"agents/greeter/system/role.md", "Greet.",
	"agents/greeter/input/", "",
	"agents/reader/system/role.md", "Read.",
	"agents/reader/agent.yaml", "inputs: [../greeter/output]\n",
}

func TestSendAndWait(t *testing.T) {
	s := newService(t, graphFiles...)
	if _, err := s.Status(); !errors.Is(err, runner.ErrNotRunning) {
		t.Fatalf("somebody works the graph already: %v", err)
	}
	sent, err := s.Send(within(t), Message{Agent: "greeter", Text: "hello", Name: "first.txt"})
	must(t, err)
	if sent.Input.Path != "agents/greeter/input/first.txt" || sent.Input.Bytes != 5 {
		t.Errorf("sent: %+v", sent)
	}
	rec, err := s.Wait(within(t), sent, nil)
	must(t, err)
	text, ok := rec.Answer()
	if !ok || text != "good morning" || len(rec.Outputs) != 1 {
		t.Fatalf("answer %q, outputs %v, error %v", text, rec.Outputs, rec.Error)
	}
	if b, err := os.ReadFile(filepath.Join(s.Root(), rec.Outputs[0].Path)); err != nil || string(b) != text {
		t.Errorf("the published answer is %q, %v", b, err)
	}

	// The reader answers too; the newest answer comes first.
	deadline := time.Now().Add(time.Minute)
	var list []Answer
	for len(list) < 2 {
		if time.Now().After(deadline) {
			t.Fatalf("answers: %+v", list)
		}
		list, err = s.Answers("", 0, "")
		must(t, err)
	}
	if list[0].Agent != "reader" || list[1].Agent != "greeter" || list[1].Turn != *rec.TurnID || list[1].Text != text {
		t.Errorf("answers: %+v", list)
	}
	older, err := s.Answers("", 1, list[0].Turn)
	must(t, err)
	if len(older) != 1 || older[0].Turn != list[1].Turn {
		t.Errorf("after %s: %+v", list[0].Turn, older)
	}

	// The same again, after it was removed, is no new turn.
	must(t, os.Remove(filepath.Join(s.Root(), sent.Input.Path)))
	sent, err = s.Send(within(t), Message{Agent: "greeter", Text: "hello", Name: "first.txt"})
	must(t, err)
	if again, err := s.Wait(within(t), sent, nil); err == nil || !strings.Contains(err.Error(), *rec.TurnID) {
		t.Errorf("record %v, error %v; want one that names the turn %s", again, err, *rec.TurnID)
	}

	// A failed turn is one that has ended.
	sent, err = s.Send(within(t), Message{Agent: "greeter", Text: "broken"})
	must(t, err)
	rec, err = s.Wait(within(t), sent, nil)
	must(t, err)
	if rec.Error == nil || rec.Error.Code != record.ModelError {
		t.Errorf("error: %v", rec.Error)
	}

	infos, err := s.Agents()
	must(t, err)
	if len(infos) != 2 || infos[0].State == "" || infos[0].Done != 1 || infos[0].Failed != 1 {
		t.Errorf("agents: %+v", infos)
	}
}

func TestWaitTellsOfProgressAndEnds(t *testing.T) {
	s := newService(t, graphFiles...)
	sent, err := s.Send(within(t), Message{Agent: "greeter", Text: "slow"})
	must(t, err)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var seen int
	_, err = s.Wait(ctx, sent, func(st runner.TurnStatus) {
		if seen = st.Tokens; seen > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || seen == 0 {
		t.Errorf("%d tokens, error %v", seen, err)
	}
}

// Another process' runner is used, and left alone.
func TestSendToARunner(t *testing.T) {
	s := newService(t, graphFiles...)
	other, err := New(Config{Graph: s.Root(), Models: s.cfg.Models})
	must(t, err)
	must(t, other.Work())
	defer other.Close()
	sent, err := s.Send(within(t), Message{Agent: "greeter", Text: "hello"})
	must(t, err)
	_, err = s.Wait(within(t), sent, nil)
	must(t, err)
	if s.own != nil {
		t.Error("the service started a runner beside the one that works the graph")
	}
	must(t, s.Close())
	if _, err := other.Status(); err != nil {
		t.Errorf("the other runner is gone: %v", err)
	}
}

// Nothing a caller names leads out of the graph or replaces anything.
func TestNamesAreChecked(t *testing.T) {
	s := newService(t, append(graphFiles, "agents/greeter/input/taken.txt", "mine", "agents/leaky/system/role.md", "Leak.")...)
	outside := t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(s.Root(), "agents", "leaky", "input")))
	long := strings.Repeat("n", 300)
	for _, tt := range []struct {
		name string
		m    Message
		arg  string
	}{
		{"no agent", Message{Agent: "nobody", Text: "x"}, "agent"},
		{"path as agent", Message{Agent: "greeter/../greeter", Text: "x"}, "agent"},
		{"no folder of its own", Message{Agent: "reader", Text: "x"}, "agent"},
		{"folder out of the graph", Message{Agent: "leaky", Text: "x"}, "agent"},
		{"taken", Message{Agent: "greeter", Text: "x", Name: "taken.txt"}, "name"},
		{"path", Message{Agent: "greeter", Text: "x", Name: "../x.txt"}, "name"},
		{"absolute", Message{Agent: "greeter", Text: "x", Name: "/tmp/x.txt"}, "name"},
		{"dots", Message{Agent: "greeter", Text: "x", Name: ".."}, "name"},
		{"dotfile", Message{Agent: "greeter", Text: "x", Name: ".x"}, "name"},
		{"backup", Message{Agent: "greeter", Text: "x", Name: "x.bak"}, "name"},
		{"control", Message{Agent: "greeter", Text: "x", Name: "a\nb"}, "name"},
		{"backslash", Message{Agent: "greeter", Text: "x", Name: `a\b`}, "name"},
		{"long", Message{Agent: "greeter", Text: "x", Name: long}, "name"},
		{"folder", Message{Agent: "greeter", Text: "x", Folder: "agents/reader/input"}, "folder"},
		{"folder of answers", Message{Agent: "reader", Text: "x", Folder: "agents/greeter/output"}, "folder"},
		{"empty", Message{Agent: "greeter"}, "text"},
		{"not text", Message{Agent: "greeter", Text: "a\x00b"}, "text"},
		{"large", Message{Agent: "greeter", Text: strings.Repeat("x", 1<<20+1)}, "text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Send(within(t), tt.m)
			var wrong *ArgumentError
			if !errors.As(err, &wrong) || wrong.Argument != tt.arg {
				t.Errorf("error %v; want one about %s", err, tt.arg)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(s.Root(), "agents/greeter/input/taken.txt")); err != nil || string(b) != "mine" {
		t.Errorf("taken.txt is %q, %v", b, err)
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("outside the graph: %v", left)
	}
}

func TestAnswerFilesStayInside(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	must(t, os.WriteFile(secret, []byte("secret"), 0o666))
	s := newService(t, append(graphFiles, "agents/greeter/output/a.txt", "an answer", "agents/greeter/turns/", "")...)
	must(t, os.Symlink(secret, filepath.Join(s.Root(), "agents/greeter/output/link.txt")))
	must(t, os.Symlink(secret, filepath.Join(s.Root(), "agents/greeter/turns/link.json")))
	if b, err := s.AnswerFile("greeter", "a.txt", 100); err != nil || string(b) != "an answer" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{"link.txt", "../system/role.md", "..", ".", "", "/etc/passwd", ".hidden"} {
		if b, err := s.AnswerFile("greeter", name, 100); err == nil {
			t.Errorf("%s: read %q", name, b)
		}
	}
	if _, err := s.AnswerFile("greeter", "a.txt", 3); err == nil {
		t.Error("more than the limit was read")
	}
	for _, id := range []string{"link", "../system/role", "..", ""} {
		if rec, err := s.Record("greeter", id); err == nil {
			t.Errorf("%s: read %v", id, rec)
		}
	}
}

// Nobody looks into the folders of an agent that is a link out of the graph.
func TestFoldersStayInside(t *testing.T) {
	outside, s := newService(t, graphFiles...), newService(t, graphFiles...)
	must(t, os.Symlink(filepath.Join(outside.Root(), "agents", "greeter"), filepath.Join(s.Root(), "agents", "away")))
	list, err := s.Folders()
	must(t, err)
	if len(list) == 0 {
		t.Error("no folder is listed")
	}
	for _, f := range list {
		if f.Agent == "away" {
			t.Errorf("%+v is listed", f)
		}
	}
	if answers, err := s.Answers("away", 0, ""); err != nil || len(answers) > 0 {
		t.Errorf("%v, %v", answers, err)
	}
}

func TestDecide(t *testing.T) {
	s := newService(t,
		"agentgraph.yaml", "models:\n  fake: {script: fake.yaml}\ndefaults: {model: fake, tools: [{tool: list_folder, policy: ask}]}\nsettle: 10ms\n",
		"fake.yaml", "constraints: none\ntools: true\nreplies:\n  - {match: look, tool_calls: [{name: list_folder, arguments: {path: .}}]}\n  - {tool_result: agents, text: I looked}\n",
		"agents/a/system/role.md", "Look.", "agents/a/input/", "",
	)
	decide := func(allow bool) {
		for {
			list, err := s.Waiting()
			if err != nil {
				t.Error(err)
				return
			}
			if len(list) > 0 {
				if err := s.Decide(list[0].ID, allow); err != nil {
					t.Error(err)
				}
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	t.Run("of a call", func(t *testing.T) {
		go decide(true)
		rec, err := s.Respond(within(t), Call{Prompt: "look", Approver: s.Desk()})
		must(t, err)
		if text, _ := rec.Answer(); text != "I looked" {
			t.Errorf("answer %q, error %v", text, rec.Error)
		}
	})
	t.Run("of a runner", func(t *testing.T) {
		sent, err := s.Send(within(t), Message{Agent: "a", Text: "look"})
		must(t, err)
		go decide(false)
		rec, err := s.Wait(within(t), sent, nil)
		must(t, err)
		if rec.Error == nil || rec.Error.Code != record.CodePolicyDenied {
			t.Errorf("error: %v", rec.Error)
		}
	})
	if err := s.Decide("nothing", true); err == nil {
		t.Error("a call that does not wait was decided")
	}
}

func TestIncompleteSetIsTheInputs(t *testing.T) {
	const set = "agents/a/input/11.txt, agents/a/input/b.txt: nothing yet in agents/c/output"
	for path, want := range map[string]bool{
		"agents/a/input/11.txt": true,
		"agents/a/input/b.txt":  true,
		"agents/a/input/1.txt":  false,
		"a/input/b.txt":         false,
		"agents/a/input/11.tx":  false,
	} {
		if got := inSet(set, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
