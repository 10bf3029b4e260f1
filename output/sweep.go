package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Sweep removes the temporary files that dead processes left in the folder at
// dir and returns their names. Files of a publish that is still going on, in
// this process or another, stay. A folder that does not exist has none.
func Sweep(dir string) (removed []string, err error) {
	d, err := openDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure(dir, "opening the output folder", err)
	}
	defer d.close()
	var names []string
	err = d.each(func(name string) {
		if IsTemp(name) {
			names = append(names, name)
		}
	})
	if err != nil {
		return nil, failure(dir, "listing the output folder", err)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		if info, err := d.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue // gone, or not ours
		}
		stale, err := d.removeStale(name)
		if err != nil {
			errs = append(errs, failure(filepath.Join(dir, name), "removing a temporary file", err))
		} else if stale {
			removed = append(removed, name)
		}
	}
	return removed, errors.Join(errs...)
}

// removeStale removes a temporary file unless a live publish holds its lock.
// A file that is gone by now counts as stale.
func (d *openFolder) removeStale(name string) (stale bool, err error) {
	file, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	locked, err := tryLock(file)
	if err != nil || !locked {
		return false, err
	}
	// The name may stand for a newer file than the one that is locked.
	mine, err := file.Stat()
	if err != nil {
		return false, err
	}
	here, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !os.SameFile(mine, here) {
		return false, err
	}
	if !renamesOpenFiles {
		file.Close()
	}
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}
