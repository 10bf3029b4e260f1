package plugin

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the provider that it tests: the first
// argument says how it behaves.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "provider" {
		provide(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	// Under the race detector a process takes a second to end without this.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

const described = `{"name":"test","model":"tiny","max_seq_len":2048,"supports_tools":true,"supports_embeddings":false,"supports_constraints":true,"supports_modalities":["text"]}`

func provide(mode string, more []string) {
	for _, a := range more {
		if a == "--describe" {
			switch mode {
			case "silent":
				fmt.Println("no JSON")
				os.Exit(3)
			case "only-json":
				fmt.Println(`{"name":"test","supports_constraints":true,"constraints":["json"]}`)
			default:
				fmt.Println(described)
			}
			return
		}
	}
	request, _ := io.ReadAll(os.Stdin)
	say := func(lines ...string) { fmt.Print(strings.Join(lines, "\n") + "\n") }
	switch mode {
	case "echo": // the request itself, so that a test sees it
		say("T:"+string(request), "D")
	case "env":
		say("T:"+strings.Join(os.Environ(), "|"), "D")
	case "stream":
		say("", "R:think", "T:Hel", "T:lo ", "T: wor", "T:ld", "D", "T:never read")
	case "line ends":
		// A provider prints its text as it is, line ends too.
		fmt.Print("T:one\nT:\n\nT:two\nthree\n\nT::D\nR:a\nb\nT:.\r\nD\r\n")
	case "half rune":
		fmt.Print("T:caf\xc3\nT:\xa9 \xf0\x9f\nT:\x98\x80\nD\n")
	case "torn rune":
		fmt.Print("T:caf\xc3\nD\n")
	case "torn at the limit":
		fmt.Print("T:caf\xc3\nD:length\n")
	case "torn thought":
		fmt.Print("R:\xc3\nT:fine\nD\n")
	case "torn in the middle":
		fmt.Print("T:caf\xc3\nT:e\nT: more\nD\n")
	case "not UTF-8":
		fmt.Print("T:a\xffb\nT: more\nD\n")
	case "Latin-1":
		fmt.Print("T:" + strings.Repeat("é", 20) + "\xe9" + strings.Repeat("é", 20) + "\nD\n")
	case "a later line":
		fmt.Print("T:a\n\xff\nD\n")
	case "its own U+FFFD":
		fmt.Print("T:a\uFFFDb\nD\n")
	case "call not UTF-8":
		fmt.Print("C:{\"id\":\"1\",\"name\":\"add\",\"arguments\":\"{\\\"a\\\":\\\"\xff\\\"}\"}\nD\n")
	case "calls":
		say(`C:{"id":"1","name":"add","arguments":"{\"a\":1}"}`, `C:{"id":"2","name":"now","arguments":{}}`, `C:{"id":"3","name":"nil","arguments":""}`, "D")
	case "call in pieces":
		say(`C:{"id":"1","name":"add","arguments":"{\"a\""}`, `C:{"id":"","name":"","arguments":":1}"}`,
			`C:{"id":"2","name":"add","arguments":"{\"a\""}`, `C:{"id":"2","name":"add","arguments":":2}"}`, "D")
	case "bad call":
		say("C:{nonsense", "D")
	case "nameless call":
		say(`C:{"id":"1","name":"","arguments":"{}"}`, "D")
	case "failure":
		say("T:par", "X:the key "+os.Getenv("PLUGIN_TEST_KEY")+" is wrong", "T:tial")
	case "length":
		say("T:cut", "D:length")
	case "garbage":
		say("Loading the model …", "T:a", "D")
	case "other events":
		say("K:5", "H:true", `I:{"name":"x"}`, "T:a", "E:{}", "D")
	case "no D":
		say("T:almost")
		fmt.Fprintln(os.Stderr, "out of memory, "+os.Getenv("PLUGIN_TEST_KEY"))
		os.Exit(7)
	case "no line end":
		fmt.Print("T:almost\nT:there")
	case "D without line end":
		fmt.Print("T:there\nD")
	case "nothing":
	case "exit after D":
		say("T:fine", "D")
		os.Exit(9)
	case "long line":
		fmt.Print("T:" + strings.Repeat("x", 10<<20) + "\nD\n")
	case "line without end":
		for {
			if _, err := os.Stdout.Write([]byte(strings.Repeat("T:x", 1<<16))); err != nil {
				return
			}
		}
	case "endless":
		for {
			if _, err := os.Stdout.Write([]byte(strings.Repeat("T:"+strings.Repeat("x", 1000)+"\n", 1000))); err != nil {
				return
			}
		}
	case "much stderr":
		for range 1000 {
			fmt.Fprint(os.Stderr, strings.Repeat("noise ", 4000))
		}
		say("T:fine", "D")
	case "hang":
		say("T:before")
		time.Sleep(time.Hour)
	case "hang after D":
		say("T:fine", "D")
		time.Sleep(time.Hour)
	case "child":
		// A child that holds the pipes and would outlive us.
		child := exec.Command(os.Args[0], "provider", "sleep", more[0])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			say("X:" + err.Error())
			return
		}
		os.WriteFile(more[0], fmt.Append(nil, child.Process.Pid), 0o600)
		say("T:before")
		time.Sleep(time.Hour)
	case "child after D":
		child := exec.Command(os.Args[0], "provider", "sleep", more[0])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			say("X:" + err.Error())
			return
		}
		os.WriteFile(more[0], fmt.Append(nil, child.Process.Pid), 0o600)
		say("T:fine", "D")
	case "sleep":
		time.Sleep(time.Hour)
	case "deaf": // does not read its request
		say("T:fine", "D")
	case "count":
		say("T:a", "T:b", "T:c", "D")
	case "json":
		say(`T:{"a"`, "T::", "T:1}", "D")
	default:
		say("X:no mode " + mode)
	}
}

func reader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }
