package machine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"os/user"
	"strings"

	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// idsUser is the user whose subordinate IDs pods with user namespaces have.
const idsUser = "kubelet"

// A subIDSource provides the subordinate IDs of a user.
type subIDSource struct {
	Lookup func(name string) (*user.User, error)
	Files  fs.FS // of the machine

	// getsubids runs the program with the arguments, and returns its output; an error that
	// is exec.ErrNotFound if it is not installed.
	Getsubids func(ctx context.Context, args ...string) (string, error)
}

func runGetsubids(ctx context.Context, args ...string) (string, error) {
	path, err := exec.LookPath("getsubids")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, args...).Output()
	return string(out), err
}

// PodIDs returns the range of host IDs for pods: the subordinate IDs of the user kubelet,
// or the zero Range if there is no such user or no range is configured (rule se-18).
// Without getsubids the files of the machine are read.
func (s subIDSource) PodIDs(ctx context.Context) (userns.Range, error) {
	account, err := s.Lookup(idsUser)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown || errors.Is(err, fs.ErrNotExist) { // or no /etc/passwd
		return userns.Range{}, nil
	}
	if err != nil {
		return userns.Range{}, fmt.Errorf("user %s: %w", idsUser, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout) // it may query a server
	defer cancel()
	uids, err := s.Getsubids(ctx, idsUser)
	if errors.Is(err, exec.ErrNotFound) {
		return s.fromFiles(account)
	}
	if err != nil {
		return userns.Range{}, fmt.Errorf("getsubids %s: %w", idsUser, err)
	}
	gids, err := s.Getsubids(ctx, "-g", idsUser)
	if err != nil {
		return userns.Range{}, fmt.Errorf("getsubids -g %s: %w", idsUser, err)
	}
	return userns.ParseSubIDs(uids, gids)
}

func (s subIDSource) fromFiles(account *user.User) (userns.Range, error) {
	uids, err := subIDsIn(s.Files, "etc/subuid", idsUser, account.Uid)
	if err != nil {
		return userns.Range{}, err
	}
	gids, err := subIDsIn(s.Files, "etc/subgid", idsUser, account.Uid)
	if err != nil || uids == "" && gids == "" {
		return userns.Range{}, err
	}
	return userns.ParseSubIDs(uids, gids)
}

// subIDsIn returns the ranges of a user in a file, in the format of getsubids. A file that
// does not exist has none.
func subIDsIn(files fs.FS, file, name, uid string) (string, error) {
	text, err := fs.ReadFile(files, file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var out strings.Builder
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) == 3 && (fields[0] == name || fields[0] == uid) {
			fmt.Fprintf(&out, "%d: %s %s %s\n", n, name, fields[1], fields[2])
			n++
		}
	}
	return out.String(), nil
}
