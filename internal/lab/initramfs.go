package lab

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// An Archive is an initramfs: a cpio archive in the format that the kernel unpacks.
type Archive struct {
	bytes.Buffer
	files int
}

// The types and permissions of files in an [Archive].
const (
	CpioDir  = 0o040755
	CpioFile = 0o100755
	CpioText = 0o100644
	CpioLink = 0o120777 // the content is the target
)

// Add appends a file of type and permissions mode, such as [CpioFile].
func (a *Archive) Add(name string, mode int, content []byte) {
	a.files++
	// Magic, inode, mode, uid, gid, links, mtime, size, device and its like (4),
	// length of the name, checksum.
	fmt.Fprintf(a, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.files, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	a.WriteString(name + "\x00")
	a.pad()
	a.Write(content)
	a.pad()
}

// dirs adds a directory and its parents, unless they have been added.
func (a *Archive) dirs(made map[string]bool, name string) {
	if name == "." || made[name] {
		return
	}
	a.dirs(made, filepath.Dir(name))
	made[name] = true
	a.Add(name, CpioDir, nil)
}

// End closes the archive and returns its content.
func (a *Archive) End() []byte {
	a.Add("TRAILER!!!", 0, nil)
	return a.Bytes()
}

// pad writes zeros up to a multiple of four bytes.
func (a *Archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}
