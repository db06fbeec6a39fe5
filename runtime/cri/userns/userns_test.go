package userns_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

func TestRangesAreValidated(t *testing.T) { // se-18
	for name, tc := range map[string]struct {
		cfg  userns.Config
		want string // "" is valid
	}{
		"the default range":       {userns.Config{}, ""},
		"for one pod":             {userns.Config{Range: userns.Range{First: 65536, Length: 65536}, MaxPods: 1}, ""},
		"odd start":               {userns.Config{Range: userns.Range{First: 65537, Length: 65536}}, "start 65537 is not a multiple of 65536"},
		"the host's IDs":          {userns.Config{Range: userns.Range{First: 0, Length: 65536}}, "start 0 is below 65536"},
		"odd length":              {userns.Config{Range: userns.Range{First: 65536, Length: 65535}}, "length 65535 is not a multiple of 65536"},
		"too few":                 {userns.Config{Range: userns.Range{First: 65536, Length: 65536}}, "65536 IDs are not enough for 110 pods with 65536 each"},
		"too many":                {userns.Config{Range: userns.Range{First: 65536, Length: 1 << 32}}, "exceed the 32-bit range"},
		"more for each 1.33":      {userns.Config{PerPod: 131072, Range: userns.Range{First: 65536, Length: 131072}, MaxPods: 1}, ""},
		"an odd number for each":  {userns.Config{PerPod: 1000}, "Config.PerPod 1000 is not a multiple of 65536"},
		"enough only for smaller": {userns.Config{PerPod: 131072, Range: userns.Range{First: 65536, Length: 65536}, MaxPods: 1}, "not enough for 1 pods with 131072 each"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.RootDir = t.TempDir()
			_, err := userns.New(tc.cfg)
			if tc.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tc.want)
			}
		})
	}
	_, err := userns.New(userns.Config{})
	assert.ErrorContains(t, err, "RootDir")
}

func TestSubordinateIDs(t *testing.T) { // se-18
	got, err := userns.ParseSubIDs("0: kubelet 65536 7208960\n", "0: kubelet 65536 7208960\n")
	require.NoError(t, err)
	assert.Equal(t, userns.Range{First: 65536, Length: 7208960}, got)
	for name, bad := range map[string][2]string{
		"differ":    {"0: kubelet 65536 7208960", "0: kubelet 65536 65536"},
		"two lines": {"0: kubelet 65536 65536\n1: kubelet 131072 65536", "0: kubelet 65536 65536"},
		"no line":   {"", ""},
		"no number": {"0: kubelet x 65536", "0: kubelet x 65536"},
		"negative":  {"0: kubelet 65536 -1", "0: kubelet 65536 -1"},
	} {
		_, err := userns.ParseSubIDs(bad[0], bad[1])
		assert.Error(t, err, name)
	}
}

func TestEachPodHasItsOwnIDsUntilItIsGone(t *testing.T) { // se-17, se-19
	dir := t.TempDir()
	cfg := userns.Config{RootDir: dir, Range: userns.Range{First: 65536, Length: 2 * 65536}, MaxPods: 2}
	a, err := userns.New(cfg)
	require.NoError(t, err)
	require.NoError(t, a.Load(), "no existing pods")
	one, err := a.Allocate("one")
	require.NoError(t, err)
	ids := []userns.Mapping{{HostID: 65536, ContainerID: 0, Length: 65536}}
	assert.Equal(t, userns.Mappings{UIDs: ids, GIDs: ids}, one)
	text, err := os.ReadFile(filepath.Join(dir, "pods", "one", "userns"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`, string(text))
	two, err := a.Allocate("two")
	require.NoError(t, err)
	assert.NotEqual(t, one, two)
	_, err = a.Allocate("three")
	require.ErrorContains(t, err, "all 2 blocks of IDs are in use")

	again, err := userns.New(cfg) // after a restart
	require.NoError(t, err)
	require.NoError(t, again.Load())
	got, err := again.Allocate("two")
	require.NoError(t, err)
	assert.Equal(t, two, got)
	require.NoError(t, again.Retain(t.Context(), func(uid types.UID) bool { return uid == "two" }))
	require.NoError(t, again.Release("one"), "a second Release is not an error")
	got, err = again.Allocate("three")
	require.NoError(t, err)
	assert.Equal(t, one, got)
	assert.NoFileExists(t, filepath.Join(dir, "pods", "one", "userns"))
}

func TestARecordThatIsNotValidIsAnError(t *testing.T) { // se-19
	record := func(id, length int) string {
		m := fmt.Sprintf(`[{"hostId":%d,"containerId":0,"length":%d}]`, id, length)
		return fmt.Sprintf(`{"uidMappings":%s,"gidMappings":%s}`, m, m)
	}
	for name, records := range map[string][]string{
		"empty":              {""},
		"no JSON":            {"{"},
		"no mappings":        {"{}"},
		"groups are missing": {`{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`},
		"the host's IDs":     {record(0, 65536)},
		"between blocks":     {record(65537, 65536)},
		"another length":     {record(65536, 1000)},
		"beyond the range":   {record(65536*300, 65536)},
		"twice":              {record(65536, 65536), record(65536, 65536)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, text := range records {
				pod := filepath.Join(dir, "pods", fmt.Sprintf("p%d", i))
				require.NoError(t, os.MkdirAll(pod, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(pod, "userns"), []byte(text), 0o644))
			}
			a, err := userns.New(userns.Config{RootDir: dir, Range: userns.Range{First: 65536, Length: 200 * 65536}})
			require.NoError(t, err)
			err = a.Load()
			assert.ErrorContains(t, err, filepath.Join("pods", fmt.Sprintf("p%d", len(records)-1), "userns"))
		})
	}
}

func TestOnlyNamesOfPodsAreTaken(t *testing.T) {
	a, err := userns.New(userns.Config{RootDir: t.TempDir()})
	require.NoError(t, err)
	for _, bad := range []types.UID{"", ".", "..", "../x", "a/b", `a\b`} {
		_, err := a.Allocate(bad)
		assert.Error(t, err, bad)
		assert.NoError(t, a.Release(bad))
	}
}

func TestManyPodsAtATime(t *testing.T) {
	a, err := userns.New(userns.Config{RootDir: t.TempDir()})
	require.NoError(t, err)
	var wg sync.WaitGroup
	got := make([]userns.Mappings, 20)
	for i := range got {
		wg.Go(func() { got[i], _ = a.Allocate(types.UID(fmt.Sprint("pod", i))) })
	}
	wg.Wait()
	seen := map[uint32]bool{}
	for _, m := range got {
		require.Len(t, m.UIDs, 1)
		seen[m.UIDs[0].HostID] = true
	}
	assert.Len(t, seen, len(got))
}

// Whatever the output is, a parsed range is within bounds and can be validated.
func FuzzParseSubIDs(f *testing.F) {
	f.Add("0: kubelet 65536 7208960\n")
	f.Add("0: kubelet 4294967295 4294967295")
	f.Add("\n0: a b c")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := userns.ParseSubIDs(text, text)
		if err != nil {
			return
		}
		if r.First < 0 || r.Length < 0 || r.First >= 1<<32 || r.Length >= 1<<32 {
			t.Errorf("%q: %v", text, r)
		}
		_, _ = userns.New(userns.Config{RootDir: "x", Range: r, MaxPods: 1})
	})
}

// Whatever a record contains, it is accepted or rejected, and allocated ranges are
// aligned and distinct.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`))
	f.Add([]byte(`{"uidMappings":[{"hostId":4294967295}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "pods", "p"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pods", "p", "userns"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		a, err := userns.New(userns.Config{RootDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if a.Load() != nil {
			return
		}
		m, err := a.Allocate("p")
		if err != nil || len(m.UIDs) != 1 || m.UIDs[0].HostID < 65536 || m.UIDs[0].HostID%65536 != 0 || m.UIDs[0].Length != 65536 {
			t.Errorf("%q: %v, %v", text, m, err)
		}
		if other, err := a.Allocate("q"); err != nil || other.UIDs[0] == m.UIDs[0] {
			t.Errorf("%q: %v, %v", text, other, err)
		}
	})
}
