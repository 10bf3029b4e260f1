package turn

import (
	"context"
	"strings"

	"agentgraph/model"
)

const blanks = " \t\r\n"

// splitThought takes the reasoning off the beginning of a text. One that does
// not end leaves no text. An engine that knows the markers keeps the two apart;
// of one that does not, such as a server that was started without its reasoning
// parser, both arrive as one text.
func splitThought(text string) (thought, rest string, ok bool) {
	inner, ok := strings.CutPrefix(strings.TrimLeft(text, blanks), model.ThoughtOpens)
	if !ok {
		return "", text, false
	}
	thought, rest, _ = strings.Cut(inner, model.ThoughtCloses)
	return strings.Trim(thought, blanks), strings.TrimLeft(rest, blanks), true
}

// dropThought moves reasoning out of a reply's text, unless the promise is
// about a text like that.
func (r *run) dropThought(ctx context.Context, resp *model.Response) {
	thought, rest, ok := splitThought(resp.Text)
	if !ok || r.con != nil && r.con.Validate(ctx, resp.Text).Valid {
		return
	}
	resp.Logprobs = logprobsFrom(resp.Logprobs, len(resp.Text)-len(rest))
	resp.Text = rest
	if resp.Reasoning != "" && thought != "" {
		thought = resp.Reasoning + "\n" + thought
	}
	if thought != "" {
		resp.Reasoning = thought
	}
}

// logprobsFrom are those of the tokens behind the first n bytes, or none where
// a token lies on both sides.
func logprobsFrom(tokens []model.TokenLogprob, n int) []model.TokenLogprob {
	for i, t := range tokens {
		if n <= 0 {
			return tokens[i:]
		}
		if n -= len(t.Token); n < 0 {
			return nil
		}
	}
	return nil
}

// thoughtFilter shows reasoning as such while it is generated.
type thoughtFilter struct {
	held     string // not decided yet, or what may be a part of the end's marker
	state    thoughtState
	last     model.Progress
	progress func(model.Progress)
}

type thoughtState int

const (
	undecided thoughtState = iota
	inThought
	behindThought
	noThought
)

func (f *thoughtFilter) pass(p model.Progress) {
	f.last = p
	f.held += p.Text
	p.Text = ""
	if f.state == undecided {
		begin := strings.TrimLeft(f.held, blanks)
		if rest, ok := strings.CutPrefix(begin, model.ThoughtOpens); ok {
			f.state, f.held = inThought, rest
		} else if !strings.HasPrefix(model.ThoughtOpens, begin) {
			f.state = noThought
		}
	}
	if f.state == inThought {
		thought, rest, closed := strings.Cut(f.held, model.ThoughtCloses)
		if closed {
			f.state, f.held = behindThought, rest
		} else {
			n := len(f.held) - partOf(f.held, model.ThoughtCloses)
			thought, f.held = f.held[:n], f.held[n:]
		}
		p.Reasoning += thought
	}
	if f.state == behindThought {
		f.held = strings.TrimLeft(f.held, blanks)
		if f.held != "" {
			f.state = noThought
		}
	}
	if f.state == noThought {
		p.Text, f.held = f.held, ""
	}
	f.progress(p)
}

// flush shows what was held when the reply ended.
func (f *thoughtFilter) flush() {
	if f.held == "" || f.state == behindThought {
		return
	}
	p := model.Progress{Tokens: f.last.Tokens}
	if f.state == inThought {
		p.Reasoning = f.held
	} else {
		p.Text = f.held
	}
	f.held = ""
	f.progress(p)
}

// partOf is the length of the longest end of text that begins marker.
func partOf(text, marker string) int {
	for n := min(len(text), len(marker)-1); n > 0; n-- {
		if strings.HasSuffix(text, marker[:n]) {
			return n
		}
	}
	return 0
}
