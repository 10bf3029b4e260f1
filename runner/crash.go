package runner

// crashPoint is called at each step of a turn by its name. Tests kill the
// process there.
var crashPoint func(step string)

func (r *Runner) at(step string) {
	if crashPoint != nil {
		crashPoint(step)
	}
}
