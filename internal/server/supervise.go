package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"agentgraph/internal/proc"
)

// job is what a supervisor is told: the first line of its stdin.
type job struct {
	Model   string        `json:"model"`
	Command []string      `json:"command"`
	Dir     string        `json:"dir"`
	Env     []string      `json:"env"` // names
	Log     string        `json:"log"`
	Lock    string        `json:"lock"`
	Address string        `json:"address"`
	Grace   time.Duration `json:"grace"`
}

// holder is what stands in a lock file.
type holder struct {
	Model   string   `json:"model"`
	Command []string `json:"command"`
}

// report is what a supervisor says, one line of its stdout each.
type report struct {
	// Started is the server's process id.
	Started int `json:"started,omitempty"`
	// Busy says who holds the lock.
	Busy *holder `json:"busy,omitempty"`
	// Taken: another process listens at the address.
	Taken bool `json:"taken,omitempty"`
	// Wrong is why the program cannot be started; Missing: it is not there.
	Wrong   string `json:"wrong,omitempty"`
	Missing bool   `json:"missing,omitempty"`
	// Ended says how the server ended, and Said the end of its log.
	Ended string `json:"ended,omitempty"`
	Said  string `json:"said,omitempty"`
}

// maxJob bounds the first line of stdin.
const maxJob = 1 << 20

// Supervise runs one server until stdin ends, ctx ends or the server does.
func Supervise(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	// The server is killed when the thread that started it ends.
	runtime.LockOSThread()
	adopt()
	in := bufio.NewReaderSize(stdin, 64<<10)
	line, err := in.ReadBytes('\n')
	if err != nil || len(line) > maxJob {
		return errors.New("this command is started by agentgraph itself; server_command: in the settings says what it runs")
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("the supervisor's job: %w", err)
	}
	say := func(r report) {
		if b, err := json.Marshal(r); err == nil {
			_, _ = stdout.Write(append(b, '\n')) // nobody may listen any more
		}
	}
	lock, busy, err := take(j)
	switch {
	case err != nil:
		say(report{Wrong: err.Error()})
		return nil
	case busy != nil:
		say(report{Busy: busy})
		return nil
	}
	defer lock.Close()
	if listening(j.Address) {
		say(report{Taken: true})
		return nil
	}
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(orphaned)
	}()
	supervise(ctx, j, orphaned, say)
	return nil
}

// take locks the server's address, or says who has.
func take(j job) (*flock.Flock, *holder, error) {
	if err := os.MkdirAll(filepath.Dir(j.Lock), 0o700); err != nil {
		return nil, nil, err
	}
	lock := flock.New(j.Lock, flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		var h holder
		data, err := os.ReadFile(j.Lock)
		if err == nil {
			_ = json.Unmarshal(data, &h) // it may be about to be written
		}
		return nil, &h, nil
	}
	data, err := json.Marshal(holder{j.Model, j.Command})
	if err == nil {
		err = os.WriteFile(j.Lock, data, 0o600)
	}
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	return lock, nil, nil
}

func supervise(ctx context.Context, j job, orphaned <-chan struct{}, say func(report)) {
	log, err := openLog(j.Log)
	if err != nil {
		say(report{Wrong: "its log cannot be written: " + err.Error()})
		return
	}
	defer log.close()
	env := proc.Environment(j.Env, "")
	cmd := exec.Command(j.Command[0], j.Command[1:]...)
	cmd.Dir, cmd.Env = j.Dir, env.Vars
	r, w, err := os.Pipe()
	if err != nil {
		say(report{Wrong: err.Error()})
		return
	}
	cmd.Stdout, cmd.Stderr = w, w
	proc.OwnGroup(cmd)
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		say(report{Wrong: unpath(err), Missing: errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist)})
		return
	}
	log.line(fmt.Sprintf("--- %s, process %d, %s", filepath.Base(j.Command[0]), cmd.Process.Pid, time.Now().Format(time.RFC3339)))
	say(report{Started: cmd.Process.Pid})
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		log.copy(r, env)
	}()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state says how
		close(ended)
	}()
	select {
	case <-ended:
	case <-orphaned:
		stop(cmd, ended, j.Grace)
	case <-ctx.Done():
		stop(cmd, ended, j.Grace)
	}
	proc.Kill(cmd) // of the group, what outlived the server
	killRest(cmd.Process.Pid)
	select {
	case <-copied:
	case <-time.After(time.Second):
		r.Close()
		<-copied
	}
	r.Close()
	log.line("--- " + cmd.ProcessState.String())
	say(report{Ended: cmd.ProcessState.String(), Said: log.said()})
}

// stop asks the server to end, and ends it when it does not.
func stop(cmd *exec.Cmd, ended <-chan struct{}, grace time.Duration) {
	proc.Terminate(cmd)
	select {
	case <-ended:
		return
	case <-time.After(grace):
	}
	proc.Kill(cmd)
	<-ended
}

func unpath(err error) string {
	var pe *os.PathError
	var ee *exec.Error
	switch {
	case errors.As(err, &ee):
		return ee.Err.Error()
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return strings.TrimSpace(err.Error())
}
