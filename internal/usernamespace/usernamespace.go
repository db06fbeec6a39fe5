// Package usernamespace detects whether a process is in a user namespace, in which it may not
// change what belongs to the whole machine, even as user 0.
package usernamespace

import (
	"io/fs"
	"slices"
	"strings"
)

// initial is the mapping of users in the initial user namespace.
var initial = []string{"0", "0", "4294967295"}

// Inside reports whether this process is in a user namespace other than the initial one. It
// returns false if proc/self/uid_map cannot be read, as on other systems. root is
// os.DirFS("/").
func Inside(root fs.FS) bool {
	mapping, err := fs.ReadFile(root, "proc/self/uid_map")
	return err == nil && !slices.Equal(strings.Fields(string(mapping)), initial)
}

// DeniesSetgroups reports whether the kernel denies setgroups in the user namespace of this
// process, as in one that a user without subordinate IDs has created. root is os.DirFS("/").
func DeniesSetgroups(root fs.FS) bool {
	value, err := fs.ReadFile(root, "proc/self/setgroups")
	return err == nil && strings.TrimSpace(string(value)) == "deny"
}
