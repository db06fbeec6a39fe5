package lab

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// An archive writes an initramfs: a cpio archive in the format that the kernel unpacks.
type archive struct {
	bytes.Buffer
	files int
}

const (
	cpioDir  = 0o040755
	cpioFile = 0o100755
	cpioText = 0o100644
	cpioLink = 0o120777 // the content is the target
)

// add appends a file of type and permissions mode.
func (a *archive) add(name string, mode int, content []byte) {
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
func (a *archive) dirs(made map[string]bool, name string) {
	if name == "." || made[name] {
		return
	}
	a.dirs(made, filepath.Dir(name))
	made[name] = true
	a.add(name, cpioDir, nil)
}

// end closes the archive.
func (a *archive) end() []byte {
	a.add("TRAILER!!!", 0, nil)
	return a.Bytes()
}

// pad writes zeros up to a multiple of four bytes.
func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}
