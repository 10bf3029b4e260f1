package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"agentgraph/model"
)

// maxSaid bounds the server's words in an error.
const maxSaid = 400

var (
	errSilent = errors.New("the server was silent for too long")
	errClosed = errors.New("the model was closed")
)

// serverError is what a server said was wrong.
type serverError struct {
	Status int
	Code   string
	Param  string
	Msg    string // cleaned and cut
	hint   string
}

func (e *serverError) Error() string {
	s := "the server"
	switch {
	case e.Status > 0:
		s += fmt.Sprintf(" answered %d %s", e.Status, strings.ToLower(http.StatusText(e.Status)))
	default:
		s += " reported an error"
	}
	if e.Msg != "" {
		s += ": " + e.Msg
	}
	if e.hint != "" {
		s += "; " + e.hint
	}
	return s
}

func (m *Model) failed(kind model.ErrorKind, d model.Delivery, err error) *model.Error {
	return &model.Error{Kind: kind, Delivery: d, Model: m.id.String(), Err: err}
}

// ended is a call that was cut off: by its context, by the server's silence or
// by Close.
func (m *Model) ended(ctx context.Context, d model.Delivery, partial *model.Response) *model.Error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = context.Canceled
	}
	kind := model.Cancelled
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = model.TimedOut
	}
	if errors.Is(cause, errSilent) {
		kind = model.TimedOut
		cause = fmt.Errorf("the server said nothing for %v", m.cfg.Timeout)
	}
	e := m.failed(kind, d, cause)
	e.Partial = partial
	return e
}

// unreached is a request that got no reply. The errors of net/http quote the
// address, query and all, so only what is inside them is told.
func (m *Model) unreached(err error, d model.Delivery) *model.Error {
	var redirect *redirectError
	if errors.As(err, &redirect) {
		return m.failed(model.Failed, model.ResponseReceived, fmt.Errorf("%s; write the right address under url:", m.clean(redirect.msg)))
	}
	var ue *url.Error
	for errors.As(err, &ue) {
		err = ue.Err
	}
	what, hint := "cannot be reached", "see that it runs, and that url: is right"
	if d == model.MayHaveBeenSent {
		what, hint = "broke off", "see in its log why"
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		hint = "correct the host in url:"
	case strings.Contains(err.Error(), "certificate"):
		hint = "name its certificates under tls_ca:, or correct url:"
	case strings.Contains(err.Error(), "HTTP response to HTTPS"):
		hint = "write http:// in url:"
	case errors.Is(err, io.EOF):
		err = errors.New("it closed the connection without an answer")
	case errors.Is(err, syscall.ECONNRESET):
		err = errors.New("it reset the connection without an answer")
	}
	e := m.failed(model.Unavailable, d, fmt.Errorf("the server at %s %s: %s; %s", m.id.Server, what, m.clean(err.Error()), hint))
	e.Retry = true
	m.probes.forgetVersion()
	return e
}

// errorBody are the shapes in which servers say what is wrong.
type errorBody struct {
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Code    json.RawMessage `json:"code"`
	Type    json.RawMessage `json:"type"`
	Param   json.RawMessage `json:"param"`
}

// readError reads a server's words about an error.
func (m *Model) readError(status int, body []byte) *serverError {
	e := &serverError{Status: status}
	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		// A web page of some proxy says nothing to anybody.
		if !strings.HasPrefix(strings.TrimSpace(string(body)), "<") {
			e.Msg = m.clean(string(body))
		}
		return e
	}
	var inner errorBody
	if json.Unmarshal(b.Error, &inner) == nil {
		b = inner
	} else if s := scalar(b.Error); s != "" {
		b.Message = b.Error
	}
	if len(b.Message) == 0 {
		b.Message = b.Detail
	}
	msg := scalar(b.Message)
	if msg == "" && len(b.Message) > 0 {
		msg = string(b.Message)
	}
	e.Msg, e.Param = m.clean(msg), scalar(b.Param)
	if e.Code = scalar(b.Code); e.Code == "" {
		e.Code = scalar(b.Type)
	} else if t := scalar(b.Type); t != "" {
		e.Code += " " + t
	}
	return e
}

// scalar is a JSON string or number as text, empty for anything else.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

var overflow = regexp.MustCompile(`(?i)context_length|exceed_context|context (length|size|window)|maximum context|too many (input )?tokens|prompt is too long|longer than the model's context`)

// refusedBy sorts a status; again says that the same may work in a moment.
func (m *Model) refusedBy(status int, body []byte) (e *model.Error, again bool) {
	se := m.readError(status, body)
	e = m.failed(model.Failed, model.ResponseReceived, se)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		// Servers quote a wrong key, in part or whole.
		se.Msg, se.hint = "", "check what key: names in the settings"
		if m.cfg.Key.IsZero() {
			se.hint = "the server wants a key; name it with key: {env: NAME} or {file: PATH}"
		}
		e.Kind = model.Unavailable
	case status == http.StatusTooManyRequests && strings.Contains(se.Code, "insufficient_quota"):
		e.Kind, e.Delivery = model.Unavailable, model.NotSent
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		// Turned away before the model saw it: loading, or busy.
		e.Kind, e.Delivery, e.Retry, again = model.Unavailable, model.NotSent, true, true
	case status >= 500:
		e.Delivery, e.Retry, again = model.MayHaveBeenSent, true, true
		if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
			e.Kind = model.Unavailable
		}
		if overflow.MatchString(se.Msg + " " + se.Code) {
			e.Kind, e.Delivery, e.Retry, again = model.ContextOverflow, model.NotSent, false, false
		}
	case status == http.StatusRequestTimeout, status == http.StatusConflict:
		e.Retry, again = true, true
	case status == http.StatusNotFound:
		e.Kind = model.Unavailable
		se.hint = "see that url: and model: are right; vLLM, SGLang, mistral.rs and llama.cpp have their API below /v1"
	case status < 400:
		se.Msg, se.hint = "", "write the address it redirects to under url:"
	case overflow.MatchString(se.Msg + " " + se.Code):
		e.Kind, e.Delivery = model.ContextOverflow, model.NotSent
	case strings.Contains(se.Code, "content_filter"), strings.Contains(se.Code, "content_policy"):
		e.Kind = model.Refused
	}
	return e, again
}

// clean makes a server's words fit to be quoted: without the key, on one line,
// and short.
func (m *Model) clean(s string) string {
	if k := m.cfg.Key.value; len(k) >= 4 {
		s = strings.ReplaceAll(s, k, hidden)
	}
	if u, err := CheckURL(m.cfg.URL); err == nil {
		// A name without a password is a token, as in https://TOKEN@host.
		secret, _ := u.User.Password()
		name := u.User.Username()
		if u.User != nil && len(name) >= 4 {
			s = strings.ReplaceAll(s, base64.StdEncoding.EncodeToString([]byte(name+":"+secret)), hidden)
		}
		if secret == "" && len(name) >= 4 {
			secret = name
		}
		if secret != "" {
			s = strings.ReplaceAll(s, secret, hidden)
			s = strings.ReplaceAll(s, url.QueryEscape(secret), hidden)
		}
		if u.RawQuery != "" {
			s = strings.ReplaceAll(s, u.RawQuery, hidden)
		}
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	s = strings.Join(strings.Fields(s), " ")
	// A semicolon begins the advice that ends our own errors.
	s = strings.ReplaceAll(s, "; ", ", ")
	if len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid], "") + "…"
	}
	return s
}
