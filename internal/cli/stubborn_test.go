//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stubbornServer is an MCP server that ends at nothing but a kill. Its process
// is in the file that its argument names.
func stubbornServer() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	if err := os.WriteFile(os.Args[1], []byte(strconv.Itoa(os.Getpid())), 0o666); err != nil {
		panic(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "stubborn", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "seen"}}}, nil, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
	time.Sleep(time.Hour)
}

// acp beside a tool server that ignores the end of its stdin and every signal
// ends as ever, and takes the server with it.
func TestEndsBesideAStubbornServer(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"closed": 0, "terminated": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			server, pid := filepath.Join(dir, "stubborn"), filepath.Join(dir, "pid")
			if err := os.Symlink(self, server); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("default: {text: a}\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			cmd := program(t, "acp", "--model", "script:"+filepath.Join(dir, "s.yaml"))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "GORACE=atexit_sleep_ms=0")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
			t.Cleanup(func() {
				late.Stop()
				cmd.Process.Kill()
				cmd.Wait()
				if text, err := os.ReadFile(pid); err == nil && t.Failed() {
					if n, err := strconv.Atoi(string(text)); err == nil {
						syscall.Kill(n, syscall.SIGKILL)
					}
				}
			})
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"s","command":%q,"args":[%q],"env":[]}]}}`+"\n", server, pid)
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				var m struct {
					ID    int
					Error json.RawMessage
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.Error != nil {
					t.Fatalf("%v: %s", err, lines.Bytes())
				}
				if m.ID == 2 {
					break
				}
			}
			text, err := os.ReadFile(pid)
			if err != nil {
				t.Fatalf("the server was not started: %v; %s", err, said.String())
			}
			n, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if sig == 0 {
				in.Close()
			} else if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
				t.Errorf("it adds %s", lines.Bytes())
			}
			if err := cmd.Wait(); err != nil || said.Len() > 0 {
				t.Errorf("it ended with %v and says %q", err, said.String())
			}
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)) // ended and not waited for is ended
			if err := syscall.Kill(n, 0); !errors.Is(err, syscall.ESRCH) && !bytes.Contains(stat, []byte(") Z ")) {
				t.Errorf("the server is still there: %v, %s", err, stat)
			}
		})
	}
}
