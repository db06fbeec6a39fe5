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
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestErrorsAreLoggedInAUserNamespaceOnly(t *testing.T) {
	for u, want := range map[stores.UserNamespace]bool{{}: false, {Gate: true}: false, {Inside: true}: false, {Inside: true, Gate: true}: true} {
		assert.Equal(t, want, u.Lenient(), "%+v", u)
	}
	assert.True(t, stores.NewUserNamespace(decode(t, "")).Gate, "enabled by default, as in Kubernetes 1.37")
	assert.False(t, stores.NewUserNamespace(decode(t, "featureGates: {KubeletInUserNamespace: false}")).Gate)

	failed := errors.New("failed")
	assert.Equal(t, failed, stores.UserNamespace{}.Explain(failed))
	err := stores.UserNamespace{Inside: true}.Explain(failed)
	require.ErrorIs(t, err, failed)
	assert.EqualError(t, err, "failed: the process is in a user namespace; the feature gate KubeletInUserNamespace ignores this error")

	assert.True(t, stores.IsDenied(fmt.Errorf("x: %w", syscall.EPERM)) && stores.IsDenied(fs.ErrPermission) && stores.IsDenied(cgroups.ErrReadOnly))
	assert.False(t, stores.IsDenied(nil) || stores.IsDenied(fs.ErrNotExist) || stores.IsDenied(syscall.EBUSY))
}

func TestTheKernelLogOfAUserNamespace(t *testing.T) { // oom-1
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	opens := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }
	denied := func() (io.ReadCloser, error) { return nil, syscall.EPERM }
	for name, tc := range map[string]struct {
		in    stores.UserNamespace
		open  func() (io.ReadCloser, error)
		reads bool
		log   string
		err   string
	}{
		"outside":         {stores.UserNamespace{Gate: true}, denied, true, "", ""}, // the watcher reports it
		"readable":        {stores.UserNamespace{Inside: true}, opens, true, "", ""},
		"denied":          {stores.UserNamespace{Inside: true, Gate: true}, denied, false, "Kernel log not read", ""},
		"denied, no gate": {stores.UserNamespace{Inside: true}, denied, false, "", "watch for out-of-memory kills: operation not permitted: the process is in a user namespace; the feature gate KubeletInUserNamespace ignores this error"},
	} {
		out.Reset()
		open, err := tc.in.KernelLog(tc.open, logger)
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
