//go:build cgo && !nonative

package local

import (
	"bytes"
	"unicode/utf8"

	"agentgraph/model"
)

// told is what a sequence knows of the probabilities of its tokens, where
// they are asked for. Its tokens are then decoded one at a time, also forced
// ones, because each needs the logits before it.
type told struct {
	answers  []bool // by token: whether it is part of the answer
	probs    []model.TokenLogprob
	draining bool // complete, and decoded on for the probabilities alone
}

// tell notes whether the token just appended is part of the answer.
func (s *sequence) tell(answer bool) {
	switch {
	case s.logprobs == 0:
	case len(s.answers) == s.tokens:
		s.answers[s.tokens-1] = answer
	default:
		s.answers = append(s.answers, answer)
	}
}

// drains reports whether a sequence that is over still has tokens to decode
// for their probabilities.
func (s *sequence) drains() bool {
	s.draining = s.logprobs > 0 && s.err == nil && len(s.pending) > 1 && s.tokens > 0
	return s.draining
}

// note records the probabilities of token id, which follows the position just
// decoded, by the logits there.
func (e *engine) note(s *sequence, id int32) {
	at := s.pos - len(s.prompt)
	if s.logprobs == 0 || at < 0 || at >= len(s.answers) || !s.answers[at] {
		return
	}
	own, ids, probs := e.cells.logprobs(s.row, id, s.logprobs)
	p := tokenLogprob(e.tokens, id, own)
	for i := range ids {
		p.Top = append(p.Top, tokenLogprob(e.tokens, ids[i], probs[i]))
	}
	s.probs = append(s.probs, p)
}

func tokenLogprob(t *tokens, id int32, logprob float32) model.TokenLogprob {
	piece := t.pieces[id]
	if t.special[id] {
		piece = piece[1:] // its name, behind the mark
	}
	p := model.TokenLogprob{Token: string(piece), Logprob: float64(logprob)}
	if !utf8.Valid(piece) {
		p.Token = string(bytes.ToValidUTF8(piece, []byte("\uFFFD")))
		p.Bytes = bytes.Clone(piece)
	}
	return p
}
