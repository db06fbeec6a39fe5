// Package untrusted reads and removes files whose content, size, type or place
// in the tree a pod or another local user can influence: a container truncates
// its /etc/hosts to 8 TiB, puts a FIFO or a link where a file was, fills a
// directory with millions of names, or has something mounted below a directory
// that is to be removed.
//
// Every function has the same guarantees:
//
//   - It reads at most as much as its limit, and one byte or entry to find out
//     that there is more.
//   - It never blocks in open, and opens only regular files and directories.
//   - It does not follow a link in the last element of a path, except
//     [OpenFollow]. The directories above are followed, so only the agent's user
//     may be able to write them; for a path inside a directory that a container
//     writes there is [OpenIn].
//   - It does not enter another mount to remove something.
//
// Limits are in bytes or entries. All functions are safe for concurrent use.
package untrusted
