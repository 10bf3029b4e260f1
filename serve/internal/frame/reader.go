package frame

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Reader reads messages. One goroutine uses it at a time.
type Reader struct {
	// Batches says that an array is taken as its messages, each answered by
	// itself. Otherwise it is a fault.
	Batches bool

	in    *bufio.Reader
	max   int
	n     int
	queue []json.RawMessage // of a batch
}

// maxBatch bounds the messages of an array.
const maxBatch = 1000

// NewReader reads lines of at most max bytes.
func NewReader(in io.Reader, max int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

// Next is the next message; empty lines are none. The error is that of the
// input, io.EOF at its end.
func (r *Reader) Next() (Message, error) {
	for {
		if len(r.queue) > 0 {
			m := read(r.queue[0])
			r.queue = r.queue[1:]
			m.N = r.n
			return m, nil
		}
		line, long, err := r.line()
		if err != nil {
			return Message{}, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 && !long {
			continue
		}
		r.n++
		var m Message
		switch {
		case long:
			m = misread(headOf(line), fmt.Sprintf("it has more than %d bytes", r.max))
		case line[0] == '[' && utf8.Valid(line):
			if m.Fault = r.batch(line); m.Fault == nil {
				continue
			}
		default:
			m = read(line)
		}
		m.N = r.n
		return m, nil
	}
}

// line reads up to the end of a line; of one that is too long it keeps the
// beginning.
func (r *Reader) line() (line []byte, long bool, err error) {
	for {
		part, err := r.in.ReadSlice('\n')
		end := err == nil
		if end {
			part = part[:len(part)-1]
		}
		if room := r.max - len(line); len(part) > room {
			part, long = part[:room], true
		}
		line = append(line, part...)
		switch {
		case end, err == io.EOF && len(line) > 0:
			return line, long, nil
		case err != bufio.ErrBufferFull:
			return nil, false, err
		}
	}
}

// batch queues the messages of an array.
func (r *Reader) batch(line []byte) *Fault {
	var all []json.RawMessage
	err := json.Unmarshal(line, &all)
	switch {
	case err != nil:
		return &Fault{Code: ParseError, Reason: noJSON(line)}
	case !r.Batches:
		return &Fault{Code: InvalidRequest, Reason: "it is an array of messages; send one message a line"}
	case len(all) == 0 || len(all) > maxBatch:
		return &Fault{Code: InvalidRequest, Reason: fmt.Sprintf("it is an array of %d messages; send 1 to %d", len(all), maxBatch)}
	}
	r.queue = all
	return nil
}
