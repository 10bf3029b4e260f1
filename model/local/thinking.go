//go:build cgo && !nonative

package local

import (
	"bytes"
	"errors"
	"strings"

	"agentgraph/model"
)

// thought is where the answer of a thinking model stands.
type thought int

const (
	noThought thought = iota
	atStart           // the first token may open one
	inThought
)

// thinker is what a model's template and vocabulary say about reasoning.
type thinker struct {
	thinks      bool
	open, close int32 // tokens of the markers; -1: several tokens
	gap         []int32
}

// newThinker looks for the markers. gap is what templates write between
// reasoning and answer.
func newThinker(template string, t *tokens, tokenize func(string, bool) ([]int32, error)) (thinker, error) {
	th := thinker{open: -1, close: -1}
	if !strings.Contains(template, model.ThoughtOpens) {
		return th, nil
	}
	th.thinks = true
	for id, piece := range t.pieces {
		switch string(bytes.TrimPrefix(piece, []byte{0xFF})) {
		case model.ThoughtOpens:
			th.open = int32(id)
		case model.ThoughtCloses:
			th.close = int32(id)
		}
	}
	var err error
	th.gap, err = tokenize("\n\n", false)
	return th, err
}

// start is the state in which an answer to this prompt begins.
func (th thinker) start(prompt string, wanted *bool) reasoning {
	r := reasoning{open: th.open, close: th.close, gap: th.gap}
	tail := strings.TrimRight(prompt, " \t\r\n")
	switch {
	case !th.thinks:
	case strings.HasSuffix(tail, model.ThoughtOpens):
		r.thinking = inThought
	case strings.HasSuffix(tail, model.ThoughtCloses), wanted != nil && !*wanted, th.open < 0 || th.close < 0:
		// The template has closed it, nobody wants it, or it cannot be told
		// from the answer in time.
	default:
		r.thinking = atStart
	}
	return r
}

// reasoning is the part of a sequence before its answer.
type reasoning struct {
	thinking    thought
	open, close int32
	gap         []int32
	thought     answerText
	trim        bool // the answer has not begun
}

// mayThink lets the first token open a thought, whatever the mask says.
func (s *sequence) mayThink() {
	if s.thinking == atStart && s.maskErr == nil {
		s.mask[s.open/32] |= 1 << (s.open % 32)
	}
}

// think takes a chosen token when it is one of the reasoning. over says that
// the sequence ends with it.
func (s *sequence) think(t *tokens, id int32) (thought, over bool) {
	if s.thinking == atStart {
		if id != s.open {
			s.thinking = noThought
			return false, false
		}
		s.thinking = inThought
		s.add(id)
		return true, s.atLimit()
	}
	s.add(id)
	rest := []byte(nil)
	if id != s.close {
		if !t.special[id] {
			s.thought.add(t.pieces[id])
		}
		at := bytes.Index(s.thought.bytes, []byte(model.ThoughtCloses))
		if at < 0 {
			return true, s.atLimit()
		}
		rest = bytes.TrimLeft(s.thought.bytes[at+len(model.ThoughtCloses):], " \t\r\n")
		s.thought.cut(at)
	}
	s.thinking = noThought
	if s.matcher == nil {
		s.trim = true
		s.text.add(s.trimStart(rest))
		return true, s.atLimit()
	}
	if len(rest) > 0 {
		s.err = errors.New("the model's reasoning and its answer share a token, so the answer cannot be constrained; switch thinking off")
		return true, true
	}
	for _, g := range s.gap {
		if s.atLimit() {
			return true, true
		}
		s.add(g)
	}
	return true, s.atLimit() || s.force(t)
}

// add appends a token; tell says whether it is part of the answer.
func (s *sequence) add(id int32) {
	s.tokens++
	s.pending = append(s.pending, id)
	s.tell(false)
}

// trimStart drops the white space between reasoning and answer.
func (s *sequence) trimStart(piece []byte) []byte {
	if !s.trim {
		return piece
	}
	piece = bytes.TrimLeft(piece, " \t\r\n")
	s.trim = len(piece) == 0
	return piece
}
