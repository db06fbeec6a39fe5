package cgroups_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

func TestSharesAndQuotas(t *testing.T) {
	for _, tc := range []struct {
		rule          string
		milli         int64
		shares, quota int64
	}{
		{"cm-1, cm-2: nothing", 0, 2, 0},
		{"cm-1: clamped from below", 1, 2, 1000},
		{"cm-2: at least 1000", 9, 9, 1000},
		{"cm-1: integer division", 3, 3, 1000},
		{"cm-2: MinMilliCPULimit", 10, 10, 1000},
		{"cm-2", 100, 102, 10_000},
		{"cm-1: a CPU", 1000, 1024, 100_000},
		{"cm-1: clamped from above", 1_000_000, 262144, 100_000_000},
		{"cm-1, cm-2: no overflow", math.MaxInt64, 262144, math.MaxInt64 / 1000},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			assert.Equal(t, tc.shares, cgroups.Shares(tc.milli))
			assert.Equal(t, tc.quota, cgroups.Quota(tc.milli, cgroups.DefaultPeriod))
		})
	}
	assert.EqualValues(t, 5000, cgroups.Quota(500, 10_000), "cm-2: another period")
	// cm-5
	assert.EqualValues(t, 500, cgroups.MilliOfQuota(50_000, 100_000))
	assert.Zero(t, cgroups.MilliOfQuota(-1, 100_000))
	assert.Zero(t, cgroups.MilliOfQuota(1, 0))
}

func TestWeightsAreTheKubelets(t *testing.T) { // cm-3
	for shares, want := range map[int64]int64{
		-1: 1, 0: 1, 2: 1, 28: 1, 29: 2, 102: 4, 512: 20, 1024: 39, 2048: 79, 4096: 157, 32768: 1250, 262143: 9999, 262144: 10000, 1 << 62: 10000,
	} {
		assert.Equal(t, want, cgroups.Weight(shares), "%d shares", shares)
	}
}

// A rounded request is never read back as less than the request.
func TestTheLargestRequestOfAValue(t *testing.T) {
	for milli := int64(0); milli <= 256_000; milli++ {
		shares := cgroups.Shares(milli)
		most := cgroups.MaxMilliOfShares(shares)
		if most < milli || cgroups.Shares(most) != shares {
			t.Fatalf("%dm are %d shares, which are at most %dm", milli, shares, most)
		}
	}
	for weight := int64(1); weight <= 10000; weight++ {
		most := cgroups.MaxSharesOfWeight(weight)
		require.Equal(t, weight, cgroups.Weight(most))
		if weight < 10000 {
			require.Equal(t, weight+1, cgroups.Weight(most+1))
		}
	}
	assert.EqualValues(t, 28, cgroups.MaxSharesOfWeight(0))
	assert.EqualValues(t, 262144, cgroups.MaxSharesOfWeight(1<<62))
}

// Rounding of a quota by the systemd driver is not drift.
func TestQuotasOfSystemdAreWholePercents(t *testing.T) {
	facts := cgroups.Facts{Version: 2, Controllers: []string{"cpu"}, Driver: cgroups.Systemd}
	for _, tc := range []struct{ quota, period, has int64 }{
		{50_500, 100_000, 51_000}, {51_000, 100_000, 51_000}, {1000, 100_000, 1000}, {1001, 100_000, 2000}, {12_345, 50_000, 12_500}, {cgroups.Unlimited, 100_000, cgroups.Unlimited},
	} {
		for facts.Version = 1; facts.Version <= 2; facts.Version++ {
			want := cgroups.Resources{CPUQuota: &tc.quota, CPUPeriod: &tc.period}
			has := facts.AsRead(want)
			assert.Equal(t, tc.has, *has.CPUQuota, "v%d: %d of %d", facts.Version, tc.quota, tc.period)
		}
	}
}

func TestNamesOfBothDrivers(t *testing.T) {
	uid := "5ba3ab6c-6d12-4c1c-8d4c-8e9e1a5f9c11"
	pods := cgroups.Name{"kubepods"}
	for _, tc := range []struct {
		rule              string
		name              cgroups.Name
		cgroupfs, systemd string
	}{
		{"kubepods", pods, "/kubepods", "/kubepods.slice"},
		{"burstable", pods.Child("burstable"), "/kubepods/burstable", "/kubepods.slice/kubepods-burstable.slice"},
		{"besteffort", pods.Child("besteffort"), "/kubepods/besteffort", "/kubepods.slice/kubepods-besteffort.slice"},
		{"cm-7: guaranteed pod", pods.Child("pod" + uid), "/kubepods/pod" + uid,
			"/kubepods.slice/kubepods-pod5ba3ab6c_6d12_4c1c_8d4c_8e9e1a5f9c11.slice"},
		{"cm-7: burstable pod", pods.Child("burstable", "pod"+uid), "/kubepods/burstable/pod" + uid,
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5ba3ab6c_6d12_4c1c_8d4c_8e9e1a5f9c11.slice"},
		{"cm-6: below a root", cgroups.Name{"my-root", "kubepods"}, "/my-root/kubepods", "/my_root.slice/my_root-kubepods.slice"},
		{"the root", nil, "/", "/"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			assert.Equal(t, tc.cgroupfs, tc.name.Path(cgroups.Cgroupfs))
			assert.Equal(t, tc.systemd, tc.name.Path(cgroups.Systemd))
			assert.Equal(t, cmp.Or(strings.TrimPrefix(path.Base(tc.systemd), "/"), "-.slice"), tc.name.Slice())
			assert.Equal(t, tc.name.String(), cgroups.ParsePath(tc.cgroupfs, cgroups.Cgroupfs).String())
			assert.Equal(t, tc.name.String(), cgroups.ParsePath(tc.systemd, cgroups.Systemd).String())
		})
	}
	assert.Equal(t, "/kubepods", pods.Child("x").Parent().String())
	assert.Empty(t, cgroups.Name{}.Parent())
	assert.Nil(t, cgroups.ParsePath("/a.scope", cgroups.Systemd))
	assert.Nil(t, cgroups.ParsePath("/-.slice", cgroups.Systemd))

	// cm-6
	for _, bad := range []cgroups.Name{{"a/b"}, {"a_b"}, {""}, {".."}, {"a\n"}} {
		assert.ErrorIs(t, bad.Check(), cgroups.ErrBadName, "%q", bad)
	}
	root, err := cgroups.ParseRoot("//a/./b/")
	require.NoError(t, err)
	assert.Equal(t, cgroups.Name{"a", "b"}, root)
	_, err = cgroups.ParseRoot("/a_b")
	assert.ErrorIs(t, err, cgroups.ErrBadName)

	// cm-8
	assert.Equal(t, uid, pods.Child("pod"+uid).PodUID())
	assert.Empty(t, pods.Child("burstable").PodUID())
	assert.Empty(t, pods.Child("podpod1").PodUID())
	assert.Equal(t, "1234", cgroups.Name{cgroups.PodPart("1234")}.PodUID())

	_, err = cgroups.ParseDriver("openrc")
	assert.ErrorContains(t, err, `"openrc"`)
}

var all = cgroups.Resources{
	CPUShares: new(int64(512)), CPUQuota: new(int64(50_000)), CPUPeriod: new(int64(100_000)),
	Memory: new(int64(64<<20 + 1)), MemoryMin: new(int64(4096)), MemoryLow: new(int64(8192)), MemoryHigh: new(int64(cgroups.Unlimited)),
	Pids: new(int64(100)), HugePages: map[int64]int64{2 << 20: 4 << 20, 1 << 30: 0},
	CPUs: "0-3,8",
}

var every = []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "systemd"}

func TestSettingsAreWrittenToFiles(t *testing.T) {
	for version, want := range map[int]string{
		1: "[{cpu cpu.shares 512} {cpu cpu.cfs_period_us 100000} {cpu cpu.cfs_quota_us 50000} {memory memory.limit_in_bytes 67108865} {pids pids.max 100} {hugetlb hugetlb.2MB.limit_in_bytes 4194304} {hugetlb hugetlb.1GB.limit_in_bytes 0}]",
		2: "[{cpu cpu.weight 20} {cpu cpu.max 50000 100000} {cpuset cpuset.cpus 0-3,8} {memory memory.max 67108865} {memory memory.min 4096} {memory memory.low 8192} {memory memory.high max} {pids pids.max 100} {hugetlb hugetlb.2MB.max 4194304} {hugetlb hugetlb.1GB.max 0}]",
	} {
		assert.Equal(t, want, fmt.Sprint(cgroups.Facts{Version: version, Controllers: every}.Settings(all)), "v%d", version)
		assert.Empty(t, cgroups.Facts{Version: version}.Settings(all), "nothing without controllers")
		assert.Empty(t, cgroups.Facts{Version: version}.Only(all).String())
	}
	f := cgroups.Facts{Version: 2, Controllers: every}
	assert.Equal(t, "[{cpu cpu.max max 100000}]", fmt.Sprint(f.Settings(cgroups.Resources{CPUQuota: new(int64(-1))})), "cm-15")
	assert.Equal(t, []string{"memory", "hugetlb"}, cgroups.Facts{Version: 2, Controllers: []string{"cpu", "cpuset", "pids"}}.Missing(), "cm-9")
	assert.Empty(t, cgroups.Facts{Version: 1, Controllers: every}.Missing(), "cm-9")
}

func TestReadReturnsTheValuesThatWereSet(t *testing.T) {
	for _, version := range []int{1, 2} {
		f := cgroups.Facts{Version: version, Controllers: every}
		read := f.AsRead(all)
		assert.EqualValues(t, 64<<20, *read.Memory, "whole pages")
		assert.EqualValues(t, 4<<20, read.HugePages[2<<20])
		assert.Empty(t, cgroups.Drift(read, f.AsRead(all)))
		read.Pids, read.HugePages[2<<20] = new(int64(cgroups.Unlimited)), 0
		assert.Equal(t, []cgroups.Change{{Resource: "pids", Actual: -1, Desired: 100}, {Resource: "hugepages 2MB", Actual: 0, Desired: 4 << 20}},
			cgroups.Drift(read, f.AsRead(all)))
	}
	assert.Equal(t, "pids is -1, not 100", cgroups.Change{Resource: "pids", Actual: -1, Desired: 100}.String())
}

// golden returns the files of a cgroup, as written by kernels.
func golden(dir string) cgroups.Files {
	return func(_, file string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", dir, file)) }
}

func TestStatsAreReadFromFiles(t *testing.T) {
	at := time.Unix(1, 0)
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			dir := fmt.Sprintf("v%d", version)
			s, err := cgroups.ReadStats(version, at, golden(dir))
			require.NoError(t, err)
			assert.Equal(t, at, s.At)
			assert.EqualValues(t, 12_345_678_000, s.CPU.UsageNanos)
			assert.EqualValues(t, 7, s.CPU.Throttled)
			assert.EqualValues(t, 10<<20, s.Memory.Usage)
			assert.EqualValues(t, 8<<20, s.Memory.WorkingSet, "st-5: without inactive_file")
			assert.EqualValues(t, 4<<20, s.Memory.RSS)
			assert.EqualValues(t, 64<<20, s.Memory.Limit)
			assert.EqualValues(t, 2, s.Memory.OOMKills)
			assert.EqualValues(t, 4096, s.Swap.Usage)
			assert.EqualValues(t, 3, s.Pids.Current)
			assert.EqualValues(t, 100, s.Pids.Limit)
			assert.EqualValues(t, 8192, s.IO.ReadBytes)
			assert.EqualValues(t, 12288, s.IO.WriteBytes)
			first := cgroups.DeviceIO{Major: 8, ReadBytes: 4096, WriteBytes: 8192, Reads: 1, Writes: 2}
			if version == 1 {
				first = cgroups.DeviceIO{Major: 8, ReadBytes: 8192, WriteBytes: 12288, Reads: 2, Writes: 3}
			}
			assert.Equal(t, first, s.IO.Devices[0])
			if version == 2 { // st-14
				assert.Equal(t, cgroups.DeviceIO{Major: 254, ReadBytes: 4096, WriteBytes: 4096, Reads: 1, Writes: 1}, s.IO.Devices[1])
				assert.Equal(t, cgroups.PSIData{Avg10: 1.5, Avg60: 0.25, Avg300: 0.1, TotalMicros: 4711}, s.CPU.PSI.Some)
				assert.NotNil(t, s.Memory.PSI)
				assert.NotNil(t, s.IO.PSI)
			}
			f := cgroups.Facts{Version: version, Controllers: every}
			r, err := f.Read([]int64{2 << 20}, golden(dir))
			require.NoError(t, err)
			assert.EqualValues(t, 64<<20, *r.Memory)
			assert.EqualValues(t, 50_000, *r.CPUQuota)
			assert.EqualValues(t, cgroups.Unlimited, r.HugePages[2<<20])
		})
	}
}

// The files that two kernels wrote for a cgroup with limits and a shell.
func TestFilesAsKernelsWroteThem(t *testing.T) {
	for dir, version := range map[string]int{"linux-6.18-v1": 1, "linux-6.1-v2": 2} {
		t.Run(dir, func(t *testing.T) {
			f := cgroups.Facts{Version: version, Controllers: every}
			r, err := f.Read([]int64{2 << 20}, golden(dir))
			require.NoError(t, err)
			want := cgroups.Resources{
				CPUShares: new(int64(512)), CPUQuota: new(int64(50_000)), CPUPeriod: new(int64(100_000)), Memory: new(int64(64 << 20)), Pids: new(int64(100)),
			}
			assert.Empty(t, cgroups.Drift(r, f.AsRead(want)))
			s, err := cgroups.ReadStats(version, time.Time{}, golden(dir))
			require.NoError(t, err)
			assert.Greater(t, s.CPU.UsageNanos, uint64(1e6))
			assert.NotZero(t, s.CPU.Periods)
			assert.Greater(t, s.Memory.Usage, uint64(100<<10))
			assert.LessOrEqual(t, s.Memory.WorkingSet, s.Memory.Usage)
			assert.NotZero(t, s.Memory.RSS)
			assert.NotZero(t, s.Memory.Faults)
			assert.EqualValues(t, 64<<20, s.Memory.Limit)
			assert.NotZero(t, s.Pids.Current)
			assert.EqualValues(t, 100, s.Pids.Limit)
			assert.NotNil(t, s.IO)
			if version == 2 {
				assert.NotZero(t, s.CPU.PSI.Full.Avg10, "st-14")
				assert.EqualValues(t, cgroups.Unlimited, r.HugePages[2<<20])
				assert.EqualValues(t, cgroups.Unlimited, s.Swap.Limit)
			}
		})
	}
}

func TestErrorsNameInvalidFiles(t *testing.T) {
	for _, version := range []int{1, 2} {
		junk := func(_, file string) ([]byte, error) { return []byte("junk\x00 -"), nil }
		_, err := cgroups.ReadStats(version, time.Time{}, junk)
		assert.ErrorContains(t, err, "pids.current")
		_, err = cgroups.Facts{Version: version}.Read([]int64{2 << 20}, junk)
		assert.ErrorContains(t, err, "pids.max")
		none := func(_, file string) ([]byte, error) { return nil, fs.ErrNotExist }
		_, err = cgroups.ReadStats(version, time.Time{}, none)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		denied := func(_, file string) ([]byte, error) { return nil, fs.ErrPermission }
		_, err = cgroups.ReadStats(version, time.Time{}, denied)
		assert.ErrorIs(t, err, fs.ErrPermission)
	}
}

func FuzzReaders(f *testing.F) {
	for _, dir := range []string{"v1", "v2", "linux-6.18-v1", "linux-6.1-v2"} {
		files, _ := filepath.Glob("testdata/" + dir + "/*")
		for _, file := range files {
			text, _ := os.ReadFile(file)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, version := range []int{1, 2} {
			files := func(_, _ string) ([]byte, error) { return text, nil }
			s, _ := cgroups.ReadStats(version, time.Time{}, files)
			if s.Memory != nil && s.Memory.WorkingSet > s.Memory.Usage {
				t.Fatal("working set above usage")
			}
			r, err := cgroups.Facts{Version: version, Controllers: every}.Read([]int64{2 << 20}, files)
			if err == nil && r.Memory != nil && *r.Memory < cgroups.Unlimited {
				t.Fatal("a negative limit")
			}
		}
		_, _ = cgroups.ParsePSI(text)
		_ = cgroups.ParsePath(string(text), cgroups.Systemd)
	})
}

func TestATreeInMemoryBehavesAsTheKernel(t *testing.T) {
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: every})
	pod := cgroups.Name{"kubepods", "pod1"}
	_, err := tree.Read(pod)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, tree.Exists(pod))
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{Memory: new(int64(5000))}))
	assert.True(t, tree.Exists(pod))
	r, err := tree.Read(pod)
	require.NoError(t, err)
	assert.EqualValues(t, 4096, *r.Memory, "in whole pages")
	assert.EqualValues(t, 100, *r.CPUWeight, "the kernel's default")
	children, err := tree.Children(cgroups.Name{"kubepods"})
	require.NoError(t, err)
	assert.Equal(t, []cgroups.Name{pod}, children)

	tree.Run(pod.Child("c"), true, 7)
	assert.ErrorContains(t, tree.Remove(t.Context(), pod), "processes [7] do not end")
	tree.Run(pod.Child("c"), false)
	require.NoError(t, tree.Remove(t.Context(), pod))
	require.NoError(t, tree.Remove(t.Context(), pod), "not there is no error")
	assert.Equal(t, 1, tree.Writes())
	tree.Fail(func(op string, _ cgroups.Name) error { return fmt.Errorf("%s: %w", op, cgroups.ErrReadOnly) })
	assert.True(t, errors.Is(tree.Apply(t.Context(), pod, cgroups.Resources{}), cgroups.ErrReadOnly))
	assert.True(t, tree.Exists(pod), "that is not known")
	assert.ErrorIs(t, tree.Apply(t.Context(), cgroups.Name{"a_b"}, cgroups.Resources{}), cgroups.ErrBadName)
}
