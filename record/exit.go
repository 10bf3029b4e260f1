package record

// Exit codes of the command line.
const (
	ExitCompleted    = 0
	ExitNotCompleted = 1 // admitted, but not completed
	ExitRefused      = 2 // arguments, settings or a refusal; nothing was asked of a model
	ExitCancelled    = 130
)

// ExitCode is the exit code of a command that ran this one turn.
func ExitCode(r *Record) int {
	switch {
	case r == nil || r.Outcome == nil:
		return ExitRefused
	case r.Outcome.Status == Completed:
		return ExitCompleted
	case r.Outcome.Status == Cancelled:
		return ExitCancelled
	default:
		return ExitNotCompleted
	}
}

// Answer returns the answer of a completed turn. It is the one way to an
// answer that may be published: text that was cut off, did not validate or
// was never asked to is not returned.
func (r *Record) Answer() (text string, ok bool) {
	if r == nil || r.Outcome == nil || r.Outcome.Status != Completed || r.Outcome.Output == nil {
		return "", false
	}
	if r.OutputValidation.Status == Invalid {
		return "", false
	}
	return *r.Outcome.Output, true
}
