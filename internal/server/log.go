package server

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"agentgraph/internal/proc"
)

// Bounds of a log: two files of logBytes, and lines of lineBytes.
const (
	logBytes  = 1 << 20
	lineBytes = 64 << 10
	saidBytes = 2 << 10
)

// logFile is what a server says, in NAME.log and the older NAME.log.1.
type logFile struct {
	path string
	f    *os.File
	size int64
	tail proc.Tail
}

func openLog(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l := &logFile{path: path, tail: proc.Tail{Keep: saidBytes}}
	return l, l.open()
}

func (l *logFile) open() error {
	// A link in its place would lead elsewhere.
	if info, err := os.Lstat(l.path); err == nil && !info.Mode().IsRegular() {
		if err := os.Remove(l.path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := f.Chmod(0o600); err != nil {
		f.Close()
		return err
	}
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	l.f = f
	return nil
}

// line adds one line. What cannot be written is lost: a full disk is no reason
// to end a server.
func (l *logFile) line(text string) {
	if l.f != nil && l.size+int64(len(text))+1 > logBytes {
		l.f.Close()
		l.f, l.size = nil, 0
		_ = os.Rename(l.path, l.path+".1")
		_ = l.open()
	}
	if l.f == nil && l.open() != nil {
		return
	}
	n, _ := l.f.WriteString(text + "\n")
	l.size += int64(n)
}

// copy takes the lines of r without the secrets of env, until its end.
func (l *logFile) copy(r io.Reader, env proc.Env) {
	lines := bufio.NewReaderSize(r, lineBytes)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			text := env.Redact(strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD"))
			l.line(text)
			_, _ = l.tail.Write([]byte(text + "\n"))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// said is the end of the log, for a message. Nothing is copied any more.
func (l *logFile) said() string { return strings.TrimSpace(l.tail.String()) }

func (l *logFile) close() {
	if l.f != nil {
		l.f.Close()
	}
}
