package emptydir_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A fakeQuotas accounts for directories: each has 1234 bytes and 5 inodes.
type fakeQuotas struct {
	mu       sync.Mutex
	fail     error // of Assign
	off      bool  // Usage has no result
	assigned map[string]bool
}

func (q *fakeQuotas) Assign(dir string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail == nil {
		q.assigned[dir] = true
	}
	return q.fail
}

func (q *fakeQuotas) Usage(dir string) (bytes, inodes uint64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.off || !q.assigned[dir] {
		return 0, 0, fmt.Errorf("%s: %w", dir, errors.ErrUnsupported)
	}
	return 1234, 5, nil
}

// vol-78, vol-47: the usage of a volume on disk of a pod in a user namespace is read from its quota, and
// measured if it has none.
func TestTheUsageOfAQuota(t *testing.T) {
	own, host := false, true
	for name, c := range map[string]struct {
		hostUsers *bool
		medium    v1.StorageMedium
		quotas    *fakeQuotas // nil: not configured

		assigned, read bool
		logged         string
	}{
		"user namespace":         {hostUsers: &own, quotas: new(fakeQuotas), assigned: true, read: true},
		"users of the host":      {hostUsers: &host, quotas: new(fakeQuotas)},
		"default users":          {quotas: new(fakeQuotas)},
		"memory":                 {hostUsers: &own, medium: v1.StorageMediumMemory, quotas: new(fakeQuotas)},
		"not configured":         {hostUsers: &own},
		"no quotas":              {hostUsers: &own, quotas: &fakeQuotas{fail: fmt.Errorf("ioctl: %w", errors.ErrUnsupported)}},
		"an error":               {hostUsers: &own, quotas: &fakeQuotas{fail: errors.New("disk on fire")}, logged: "disk on fire"},
		"accounting is disabled": {hostUsers: &own, quotas: &fakeQuotas{off: true}, assigned: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			cfg := emptydir.Config{Mounter: new(volumetest.Mounter), Logger: slog.New(slog.NewTextHandler(&log, nil))}
			if c.quotas != nil {
				c.quotas.assigned = map[string]bool{}
				cfg.Quotas = c.quotas
			}
			p, err := emptydir.New(cfg)
			require.NoError(t, err)
			req := volumetest.Request(t, p, spec(c.medium, ""))
			req.Pod.Spec.HostUsers = c.hostUsers
			mounted, err := p.SetUp(t.Context(), req)
			require.NoError(t, err)
			if c.quotas != nil {
				assert.Equal(t, c.assigned, c.quotas.assigned[req.Dir()])
			}
			if c.medium == v1.StorageMediumDefault {
				require.NoError(t, os.WriteFile(filepath.Join(mounted.Path, "f"), make([]byte, 100_000), 0o600))
			}
			stats, err := p.Stats(t.Context(), req.Place, mounted.Volume)
			require.NoError(t, err)
			assert.NotZero(t, *stats.CapacityBytes)
			assert.Equal(t, c.read, *stats.UsedBytes == 1234 && *stats.InodesUsed == 5)
			if c.medium == v1.StorageMediumDefault && !c.read {
				assert.GreaterOrEqual(t, *stats.UsedBytes, uint64(100_000))
				assert.EqualValues(t, 2, *stats.InodesUsed)
			}
			if c.logged == "" {
				assert.Empty(t, log.String())
			} else {
				assert.Contains(t, log.String(), c.logged)
			}
			require.NoError(t, p.TearDown(t.Context(), req.Place))
		})
	}
}

// A directory of a file system without quotas, as that of most tests, is refused and unchanged.
func TestADirectoryWithoutQuotas(t *testing.T) {
	q, dir := emptydir.NewProjectQuotas(), t.TempDir()
	_, _, err := q.Usage(dir)
	require.Error(t, err)
	if err := q.Assign(dir); err != nil {
		_, _, err = q.Usage(dir)
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
	require.Error(t, q.Assign(filepath.Join(dir, "none")))
	_, _, err = q.Usage(filepath.Join(dir, "none"))
	require.Error(t, err)
}
