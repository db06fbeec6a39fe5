package machine

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

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// Pods have the subordinate IDs of the user kubelet, which were ignored.
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
		"no user":               {subIDSource{Lookup: unknown, Files: files("kubelet:131072:7208960", ""), Getsubids: prints(line, line)}, userns.Range{}, ""},
		"no /etc/passwd":        {subIDSource{Lookup: func(string) (*user.User, error) { return nil, fs.ErrNotExist }, Files: files("", ""), Getsubids: absent}, userns.Range{}, ""},
		"a failed lookup":       {subIDSource{Lookup: func(string) (*user.User, error) { return nil, errors.New("timeout") }, Files: files("", ""), Getsubids: absent}, userns.Range{}, "user kubelet: timeout"},
		"getsubids":             {subIDSource{Lookup: known, Files: files("", ""), Getsubids: prints(line, line)}, some, ""},
		"other groups":          {subIDSource{Lookup: known, Files: files("", ""), Getsubids: prints(line, "0: kubelet 262144 7208960\n")}, userns.Range{}, "differ"},
		"two ranges":            {subIDSource{Lookup: known, Files: files("", ""), Getsubids: prints(line+line, line+line)}, userns.Range{}, "expected one line"},
		"a failure":             {subIDSource{Lookup: known, Files: files("", ""), Getsubids: func(context.Context, ...string) (string, error) { return "", errors.New("exit status 1") }}, userns.Range{}, "getsubids kubelet: exit status 1"},
		"files":                 {subIDSource{Lookup: known, Files: files("x:1:2\nkubelet:131072:7208960\n", "998:131072:7208960"), Getsubids: absent}, some, ""},
		"files without it":      {subIDSource{Lookup: known, Files: files("x:1:2\n# kubelet\n", ""), Getsubids: absent}, userns.Range{}, ""},
		"no files":              {subIDSource{Lookup: known, Files: fstest.MapFS{}, Getsubids: absent}, userns.Range{}, ""},
		"files with users only": {subIDSource{Lookup: known, Files: files("kubelet:131072:7208960", ""), Getsubids: absent}, userns.Range{}, "subordinate group IDs"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.source.PodIDs(t.Context())
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// The allocator has the range of the source.
func TestUserNamespacesAreInTheConfiguredRange(t *testing.T) {
	b := wingtest.Base(t, wingtest.Standalone(t, ""))
	b.Config.RootDir = t.TempDir()
	known := subIDSource{
		Lookup:    func(string) (*user.User, error) { return &user.User{Uid: "998"}, nil },
		Getsubids: func(context.Context, ...string) (string, error) { return "0: kubelet 131072 7208960\n", nil },
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

// noSubIDs is the source of a machine without a user kubelet.
var noSubIDs = subIDSource{Lookup: func(name string) (*user.User, error) { return nil, user.UnknownUserError(name) }}
