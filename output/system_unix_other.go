//go:build unix && !linux

package output

import "io/fs"

func (d *openFolder) rename(temp, name string, info fs.FileInfo) error {
	return d.linkNew(temp, name, info)
}

func changeTime(fs.FileInfo) int { return 0 }
