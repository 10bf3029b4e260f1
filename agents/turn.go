package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentgraph/constraint"
	"agentgraph/record"
	"agentgraph/schemafile"
	"agentgraph/turn"
)

// maxPartBytes bounds one file of system/.
const maxPartBytes = 4 << 20

// Input is one file a turn is about.
type Input struct {
	Path   string // relative to the graph, with forward slashes
	Data   []byte
	SHA256 string // of the whole file, in hexadecimal; empty: that of Data
	// Size of the whole file where Data is cut short; 0: Data is whole.
	Size int64
}

func (in Input) size() int64 { return max(in.Size, int64(len(in.Data))) }

func (in Input) sha() string {
	if in.SHA256 != "" {
		return in.SHA256
	}
	sum := sha256.Sum256(in.Data)
	return hex.EncodeToString(sum[:])
}

// Turn makes the request of one turn from the agent's folder as it is now.
// What it leaves open is the caller's: the model, the names of the turn, the
// history, the lineage, and where progress and audit events go.
//
// The request is never nil, so that a refusal can be recorded with what is
// known. The error is an *Error.
func (a *Agent) Turn(in []Input) (*turn.Request, error) {
	s := a.Settings
	req := &turn.Request{
		Agent:             a.Name,
		Prompt:            s.Prompt,
		SchemaInPrompt:    s.SchemaInPrompt,
		ConstraintOptions: s.Constraint,
		Sampling:          s.Sampling,
		Thinking:          s.Thinking,
		Tools:             s.Tools,
		MaxToolRounds:     s.MaxToolRounds,
		ToolFormat:        constraint.CallFormat(s.ToolFormat),
		Solo:              s.Solo,
		Repair:            s.Repair,
		Timeout:           s.Timeout,
		ModelCalls:        s.ModelCalls,
		SettingsSHA256:    s.SHA256(),
		Inputs:            []record.FileRef{},
	}
	for _, i := range in {
		req.Inputs = append(req.Inputs, record.FileRef{Path: i.Path, SHA256: i.sha(), Bytes: i.size()})
	}
	if a.Err != nil {
		return req, a.Err
	}
	a.toolPlace(req)
	system, err := a.system()
	req.System = system
	if err != nil {
		return req, err
	}
	if err := a.schema(req); err != nil {
		return req, err
	}
	for _, i := range in {
		if err := a.checkInput(i); err != nil {
			return req, err
		}
	}
	req.User = UserText(in)
	if len(req.User) > s.InputBytes {
		return req, inputTooLarge(a.Name, "", int64(len(req.User)), s.InputBytes)
	}
	return req, nil
}

// UserText is the user message of a turn: the text of its one input as it is,
// or, of several, a section for each, in the order of `inputs:`. A section is
// a line "## " and the input's path, a blank line, and the text without
// trailing line ends; sections are joined by a blank line.
func UserText(in []Input) string {
	if len(in) == 1 {
		return string(in[0].Data)
	}
	sections := make([]string, len(in))
	for i, part := range in {
		sections[i] = "## " + part.Path + "\n\n" + strings.TrimRight(string(part.Data), "\r\n")
	}
	return strings.Join(sections, "\n\n")
}

func (a *Agent) checkInput(in Input) *Error {
	if in.size() > int64(a.Settings.InputBytes) {
		return inputTooLarge(a.Name, in.Path, in.size(), a.Settings.InputBytes)
	}
	if msg, hint := turn.NotText("the input", in.Data); msg != "" {
		return &Error{Code: record.InputNotText, Finding: Finding{
			File: in.Path, Severity: SeverityError, Agent: a.Name, Msg: msg, Hint: hint,
		}}
	}
	return nil
}

func inputTooLarge(agent, path string, n int64, limit int) *Error {
	return &Error{Code: record.InputTooLarge, Finding: Finding{
		File: path, Severity: SeverityError, Agent: agent,
		Msg:  fmt.Sprintf("the input has %d bytes, more than input_bytes allows (%d)", n, limit),
		Hint: "split it, or raise limits: input_bytes",
	}}
}

// system returns the texts of system/: the files that are text and no
// dotfiles, sorted by name bytewise, without trailing line ends.
func (a *Agent) system() ([]string, error) {
	entries, err := os.ReadDir(a.SystemDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, a.systemError(a.SystemDir, "the folder cannot be read: "+unpath(err).Error(), "make it readable")
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	var parts []string
	for _, e := range entries {
		path := filepath.Join(a.SystemDir, e.Name())
		_, reason, err := Inspect(a.root, path)
		if reason != "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var data []byte
		if err == nil {
			data, err = readBounded(path, maxPartBytes)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, a.systemError(path, "the file cannot be read: "+unpath(err).Error(), "make it readable, or move it out of system")
		}
		if why, _ := turn.NotText("", data); why != "" {
			continue
		}
		if text := strings.TrimRight(string(data), "\r\n"); text != "" {
			parts = append(parts, text)
		}
	}
	return parts, nil
}

func (a *Agent) systemError(path, msg, hint string) *Error {
	return &Error{Code: record.SettingsInvalid, Finding: Finding{
		File: rel(a.root, path), Severity: SeverityError, Agent: a.Name, Msg: msg, Hint: hint,
	}}
}

// schema puts the promise of the agent's schema file into req.
func (a *Agent) schema(req *turn.Request) error {
	if _, err := os.Lstat(a.SystemDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file, err := schemafile.Find(a.SystemDir, schemafile.WithCheck(a.staysInside),
		schemafile.WithMaxBytes(int64(a.Settings.Constraint.Limits.OrStandard().SchemaBytes)))
	if err != nil {
		return a.schemaError(err)
	}
	if file == nil {
		return nil
	}
	req.Spec = &constraint.Spec{Kind: file.Kind(), Source: file.Source, File: rel(a.root, file.Path)}
	req.SchemaFile = filepath.Base(file.Path)
	return nil
}

// staysInside refuses a schema file that is a link out of the graph, before a
// byte of what it leads to is read.
func (a *Agent) staysInside(path string) error {
	if !LeadsOut(a.root, path) {
		return nil
	}
	return &Error{Code: record.OutsideGraph, Finding: Finding{
		File: rel(a.root, path), Severity: SeverityError, Agent: a.Name,
		Msg: "the schema file is a link that leads out of the graph", Hint: "copy the file into system",
	}}
}

func (a *Agent) schemaError(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	e := &Error{Code: record.SchemaRefused, Cause: err, Finding: Finding{
		File: rel(a.root, a.SystemDir), Severity: SeverityError, Agent: a.Name, Msg: err.Error(),
	}}
	var se *schemafile.Error
	if errors.As(err, &se) {
		e.File, e.Line, e.Col, e.Msg, e.Hint = rel(a.root, se.File), se.Line, se.Col, se.Msg, se.Hint
	}
	return e
}

func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("it has %d bytes, more than %d", info.Size(), limit)
	}
	return os.ReadFile(path)
}

// AnswerName is the format and the extension that the schema file of a request
// gives its answers; ok is false when there is none.
func AnswerName(req *turn.Request) (format, ext string, ok bool) {
	if req.SchemaFile == "" {
		return "", "", false
	}
	name, err := schemafile.Parse(req.SchemaFile)
	if err != nil {
		return "", "", false
	}
	return name.Format, name.Ext, true
}

// Fingerprint changes when the settings, the system parts or the schema file
// change: a turn that was refused before admission is then worth another try.
func (a *Agent) Fingerprint() string {
	h := sha256.New()
	put := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	put(a.Settings.SHA256())
	if a.Err != nil {
		put(a.Err.Error())
	}
	entries, err := os.ReadDir(a.SystemDir)
	if err != nil {
		put(unpath(err).Error())
	}
	for _, e := range entries {
		put(e.Name())
		path := filepath.Join(a.SystemDir, e.Name())
		if LeadsOut(a.root, path) {
			target, _ := os.Readlink(path) // what it leads to is not read
			put("out " + target)
			continue
		}
		// Never open what is no file: a FIFO would block.
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			put(e.Type().String())
			continue
		}
		if info.Size() > maxPartBytes {
			put(fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			put(unpath(err).Error())
			continue
		}
		put(string(data))
	}
	return hex.EncodeToString(h.Sum(nil))
}
