//go:build unix

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the supervisor, the server and a caller
// that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case SupervisorCommand:
			if err := Supervise(context.Background(), os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
			os.Exit(0)
		case "serve":
			serve(os.Args[2], os.Args[3], os.Args[4])
		case "sleep":
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(time.Hour)
		case "caller":
			caller(os.Args[2:])
		}
	}
	// Under the race detector a process takes a second to end without this.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// note appends a line to the file that tests read.
func note(file, text string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, text)
		f.Close()
	}
}

// serve is a server that behaves as mode says. Its pid, and those of what it
// starts, are noted.
func serve(mode, port, notes string) {
	note(notes, "pid "+strconv.Itoa(os.Getpid()))
	mux := http.NewServeMux()
	var asked int
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		switch {
		case mode == "loading" && asked < 4:
			w.WriteHeader(http.StatusServiceUnavailable)
		case mode == "models only", mode == "key":
			w.WriteHeader(http.StatusNotFound)
		case mode == "never ready":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		if mode == "key" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("POST /die", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	child := func(detached bool) {
		cmd := exec.Command(os.Args[0], "sleep")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: detached}
		if cmd.Start() == nil {
			note(notes, "pid "+strconv.Itoa(cmd.Process.Pid))
		}
	}
	switch mode {
	case "broken":
		fmt.Println("one", strings.Repeat("x", 5000))
		fmt.Println("the key is", os.Getenv("SERVER_TEST_KEY"))
		fmt.Println("no such model")
		os.Exit(4)
	case "children":
		child(false)
		child(true)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "polite":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		go func() {
			<-c
			note(notes, "asked to end")
			os.Exit(0)
		}()
	case "chatty":
		for range 60 {
			fmt.Println(strings.Repeat("chatter ", 8000))
		}
		fmt.Println("the key is " + os.Getenv("SERVER_TEST_KEY"))
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(5)
	}
	fmt.Println(http.Serve(l, mux))
	os.Exit(6)
}

// caller starts a server and waits to be killed.
func caller(args []string) {
	s, err := New(Config{Model: "m", Command: args[2:], URL: args[0], StateDir: args[1], Startup: time.Minute,
		Supervisor: []string{os.Args[0], SupervisorCommand}, grace: 300 * time.Millisecond})
	if err == nil {
		err = s.Ready(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
