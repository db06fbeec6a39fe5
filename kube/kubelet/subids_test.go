package kubelet

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"os/user"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// The subordinate IDs of the user kubelet are those of pods. They were ignored.
func TestPodsHaveTheSubordinateIDsOfTheUserKubelet(t *testing.T) { // se-18
	known := func(string) (*user.User, error) { return &user.User{Uid: "998"}, nil }
	unknown := func(name string) (*user.User, error) { return nil, user.UnknownUserError(name) }
	absent := func(context.Context, ...string) (string, error) {
		return "", &exec.Error{Name: "getsubids", Err: exec.ErrNotFound}
	}
	prints := func(uids, gids string) func(context.Context, ...string) (string, error) {
		return func(_ context.Context, args ...string) (string, error) {
			switch strings.Join(args, " ") {
			case "kubelet":
				return uids, nil
			case "-g kubelet":
				return gids, nil
			}
			return "", errors.New("exit status 1")
		}
	}
	files := func(uids, gids string) fstest.MapFS {
		return fstest.MapFS{"etc/subuid": {Data: []byte(uids)}, "etc/subgid": {Data: []byte(gids)}}
	}
	some := userns.Range{First: 131072, Length: 7208960}
	const line = "0: kubelet 131072 7208960\n"
	for name, tc := range map[string]struct {
		source subIDSource
		want   userns.Range
		err    string
	}{
		"no user":               {subIDSource{unknown, files("kubelet:131072:7208960", ""), prints(line, line)}, userns.Range{}, ""},
		"no /etc/passwd":        {subIDSource{func(string) (*user.User, error) { return nil, fs.ErrNotExist }, files("", ""), absent}, userns.Range{}, ""},
		"a failed lookup":       {subIDSource{func(string) (*user.User, error) { return nil, errors.New("timeout") }, files("", ""), absent}, userns.Range{}, "user kubelet: timeout"},
		"getsubids":             {subIDSource{known, files("", ""), prints(line, line)}, some, ""},
		"other groups":          {subIDSource{known, files("", ""), prints(line, "0: kubelet 262144 7208960\n")}, userns.Range{}, "differ"},
		"two ranges":            {subIDSource{known, files("", ""), prints(line+line, line+line)}, userns.Range{}, "expected one line"},
		"a failure":             {subIDSource{known, files("", ""), func(context.Context, ...string) (string, error) { return "", errors.New("exit status 1") }}, userns.Range{}, "getsubids kubelet: exit status 1"},
		"files":                 {subIDSource{known, files("x:1:2\nkubelet:131072:7208960\n", "998:131072:7208960"), absent}, some, ""},
		"files without it":      {subIDSource{known, files("x:1:2\n# kubelet\n", ""), absent}, userns.Range{}, ""},
		"no files":              {subIDSource{known, fstest.MapFS{}, absent}, userns.Range{}, ""},
		"files with users only": {subIDSource{known, files("kubelet:131072:7208960", ""), absent}, userns.Range{}, "subordinate group IDs"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.source.podIDs(t.Context())
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// The range of the source is that of the allocator.
func TestUserNamespacesAreInTheConfiguredRange(t *testing.T) {
	b := newBase(t, standalone(t, ""))
	b.cfg.RootDir = t.TempDir()
	known := subIDSource{
		lookup:    func(string) (*user.User, error) { return &user.User{Uid: "998"}, nil },
		getsubids: func(context.Context, ...string) (string, error) { return "0: kubelet 131072 7208960\n", nil },
	}
	ids, err := newUserNamespaces(t.Context(), b, false, known)
	require.NoError(t, err)
	if ids == nil {
		t.Skip("this system has no user namespaces")
	}
	m, err := ids.Allocate("web")
	require.NoError(t, err)
	assert.EqualValues(t, 131072, m.UIDs[0].HostID)
}

// noSubIDs is that of a machine without a user kubelet.
var noSubIDs = subIDSource{lookup: func(name string) (*user.User, error) { return nil, user.UnknownUserError(name) }}
