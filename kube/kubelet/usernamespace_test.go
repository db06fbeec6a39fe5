package kubelet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

func TestErrorsAreLoggedInAUserNamespaceOnly(t *testing.T) {
	for u, want := range map[userNamespace]bool{{}: false, {gate: true}: false, {inside: true}: false, {inside: true, gate: true}: true} {
		assert.Equal(t, want, u.lenient(), "%+v", u)
	}
	assert.True(t, newUserNamespace(decode(t, "")).gate, "enabled by default, as in Kubernetes 1.37")
	assert.False(t, newUserNamespace(decode(t, "featureGates: {KubeletInUserNamespace: false}")).gate)

	failed := errors.New("failed")
	assert.Equal(t, failed, userNamespace{}.explain(failed))
	err := userNamespace{inside: true}.explain(failed)
	require.ErrorIs(t, err, failed)
	assert.EqualError(t, err, "failed: the process is in a user namespace; the feature gate KubeletInUserNamespace ignores this error")

	assert.True(t, isDenied(fmt.Errorf("x: %w", syscall.EPERM)) && isDenied(fs.ErrPermission) && isDenied(cgroups.ErrReadOnly))
	assert.False(t, isDenied(nil) || isDenied(fs.ErrNotExist) || isDenied(syscall.EBUSY))
}

func TestTheKernelLogOfAUserNamespace(t *testing.T) { // oom-1
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	opens := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }
	denied := func() (io.ReadCloser, error) { return nil, syscall.EPERM }
	for name, tc := range map[string]struct {
		in    userNamespace
		open  func() (io.ReadCloser, error)
		reads bool
		log   string
		err   string
	}{
		"outside":         {userNamespace{gate: true}, denied, true, "", ""}, // the watcher reports it
		"readable":        {userNamespace{inside: true}, opens, true, "", ""},
		"denied":          {userNamespace{inside: true, gate: true}, denied, false, "Kernel log not read", ""},
		"denied, no gate": {userNamespace{inside: true}, denied, false, "", "watch for out-of-memory kills: operation not permitted: the process is in a user namespace; the feature gate KubeletInUserNamespace ignores this error"},
	} {
		out.Reset()
		open, err := tc.in.kernelLog(tc.open, logger)
		if tc.err != "" {
			assert.EqualError(t, err, tc.err, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, tc.reads, open != nil, name)
		if tc.log == "" {
			assert.Empty(t, out.String(), name)
		} else {
			assert.Contains(t, out.String(), tc.log, name)
		}
	}
}
