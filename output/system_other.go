//go:build !unix

package output

import (
	"io/fs"
	"os"
)

const renamesOpenFiles = false

// tryLock always succeeds: an open file cannot be removed here anyway.
func tryLock(*os.File) (bool, error) { return true, nil }

// syncDir does nothing: folders cannot be synced here.
func syncDir(*os.File) error { return nil }

func (d *openFolder) rename(temp, name string, info fs.FileInfo) error {
	return d.linkNew(temp, name, info)
}

func changeTime(fs.FileInfo) int { return 0 }

func systemHint(error) string { return "check the disk, then retry the turn" }
