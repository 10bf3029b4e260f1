package agents

import "path/filepath"

// Folder is an agent that no graph has: a folder with system/ somewhere below
// root, as other programs leave them. It has the default settings and no
// model. Both paths are absolute and without links.
func Folder(root, dir string) *Agent {
	a := &Agent{Name: filepath.Base(dir), Dir: dir, root: root, Settings: effective(&graphFile{}, &agentFile{})}
	a.Inputs = []string{filepath.Join(dir, "input")}
	a.SystemDir, a.OutputDir, a.TurnsDir = filepath.Join(dir, "system"), filepath.Join(dir, "output"), filepath.Join(dir, "turns")
	for _, p := range []*string{&a.SystemDir, &a.OutputDir, &a.TurnsDir} {
		if real, err := realPath(*p); err == nil && inside(root, real) {
			*p = real
		} else {
			*p = filepath.Join(dir, StateDir, "outside") // nothing is read there
		}
	}
	return a
}
