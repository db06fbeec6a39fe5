package oom_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/runtime"
)

// logs are kernel logs, in the formats of different versions.
var logs = map[string]struct {
	lines []string
	want  []oom.Kill
}{
	"oom-1: a cgroup's limit, since 5.0": {
		[]string{
			"stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000",
			"Tasks state (memory values in pages):",
			"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0,oom_memcg=/kubepods/burstable/pod1,task_memcg=/kubepods/burstable/pod1/abc,task=stress,pid=4711,uid=0",
			"Memory cgroup out of memory: Killed process 4711 (stress) total-vm:213424kB, anon-rss:64512kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:196kB oom_score_adj:1000",
		},
		[]oom.Kill{{Cgroup: "/kubepods/burstable/pod1", Victim: "/kubepods/burstable/pod1/abc", Process: "stress", PID: 4711, Count: 1}},
	},
	"oom-2: the machine": {
		[]string{
			"java invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
			"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/x.service,task=java,pid=99,uid=1000",
			"Out of memory: Killed process 99 (java) total-vm:9134240kB, anon-rss:12kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:64kB oom_score_adj:0",
		},
		[]oom.Kill{{Cgroup: "/", Victim: "/system.slice/x.service", Process: "java", PID: 99, Count: 1}},
	},
	"oom-1: kernels before 5.0": {
		[]string{
			"a.out invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=0",
			"Task in /a/b killed as a result of limit of /a",
			"Memory cgroup out of memory: Kill process 7 (a.out) score 1000 or sacrifice child",
			"Killed process 7 (a.out) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB",
		},
		[]oom.Kill{{Cgroup: "/a", Victim: "/a/b", Process: "a.out", PID: 7, Count: 1}},
	},
	"a name with brackets and spaces": {
		[]string{"x invoked oom-killer: ", "Out of memory: Killed process 8 (a (b) c) total-vm:1kB, anon-rss:1kB"},
		[]oom.Kill{{Cgroup: "/", Victim: "/", Process: "a (b) c", PID: 8, Count: 1}},
	},
	"a path with a comma": {
		[]string{
			"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,b,task_memcg=/a,b/c,task=p,pid=3,uid=0",
			"Memory cgroup out of memory: Killed process 3 (p) total-vm:1kB",
		},
		[]oom.Kill{{Cgroup: "/a,b", Victim: "/a,b/c", Process: "p", PID: 3, Count: 1}},
	},
	"only the end was seen": {
		[]string{"Memory cgroup out of memory: Killed process 3 (p) total-vm:1kB", "Out of memory: Killed process 4 (q) total-vm:1kB"},
		[]oom.Kill{{Process: "p", PID: 3, Count: 1}, {Cgroup: "/", Victim: "/", Process: "q", PID: 4, Count: 1}},
	},
	"other lines":        {[]string{"usb 1-1: new device", "", "Killed process many (x)", "Killed process -1 (x)", "Killed process "}, nil},
	"the same, twice":    {[]string{"oom-kill:", "oom-kill:", "Killed process 5 ("}, []oom.Kill{{Cgroup: "/", Victim: "/", PID: 5, Count: 1}}},
	"two processes of a": {[]string{"oom-kill:oom_memcg=/a,task_memcg=/a,task=p,pid=3,uid=0", "Killed process 3 (p), UID 0, total"}, []oom.Kill{{Cgroup: "/a", Victim: "/a", Process: "p", PID: 3, Count: 1}}},
}

func TestKernelLogsAreParsed(t *testing.T) {
	for name, tc := range logs {
		t.Run(name, func(t *testing.T) {
			var p oom.Parser
			var got []oom.Kill
			for _, line := range tc.lines {
				if k, ok := p.Line(line); ok {
					got = append(got, k)
				}
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func FuzzParser(f *testing.F) {
	for _, tc := range logs {
		f.Add("6,1,2,-;" + strings.Join(tc.lines, "\x01"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p oom.Parser
		_, line, _ := oom.Record([]byte(text))
		for part := range strings.SplitSeq(line, "\x01") {
			if k, ok := p.Line(part); ok && (k.PID <= 0 || k.Count != 1) {
				t.Fatalf("%+v", k)
			}
		}
	})
}

func TestRecordsOfTheLog(t *testing.T) {
	n, text, ok := oom.Record([]byte("6,339,5140900,-;NET: Registered\n SUBSYSTEM=x\n"))
	assert.True(t, ok)
	assert.EqualValues(t, 339, n)
	assert.Equal(t, "NET: Registered", text)
	for _, bad := range []string{"", "6,1", "6,x,1,-;a", "6,1,2"} {
		_, _, ok := oom.Record([]byte(bad))
		assert.False(t, ok, bad)
	}
}

// kmsg is a log of records.
type kmsg struct {
	records chan string
	closed  chan struct{}
}

func (k *kmsg) Read(p []byte) (int, error) {
	select {
	case r, ok := <-k.records:
		switch {
		case !ok:
			return 0, io.EOF
		case r == "lost":
			return 0, oom.ErrLost
		}
		return copy(p, "6,1,2,-;"+r+"\n"), nil
	case <-k.closed:
		return 0, io.ErrClosedPipe
	}
}
func (k *kmsg) Close() error { close(k.closed); return nil }

func TestTheMachineOutOfMemoryIsAnEvent(t *testing.T) { // oom-1, oom-2
	synctest.Test(t, func(t *testing.T) {
		log := &kmsg{make(chan string), make(chan struct{})}
		var kills []oom.Kill
		var events []runtime.Event
		w, err := oom.New(oom.Config{
			Kmsg:   func() (io.ReadCloser, error) { return log, nil },
			Handle: func(k oom.Kill) { kills = append(kills, k) },
			Node:   v1.ObjectReference{Kind: "Node", Name: "n"}, Record: func(e runtime.Event) { events = append(events, e) },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		for _, name := range []string{"oom-1: a cgroup's limit, since 5.0", "oom-2: the machine", "the same, twice"} {
			log.records <- "lost"
			for _, line := range logs[name].lines {
				log.records <- line
			}
		}
		synctest.Wait()
		assert.Len(t, kills, 3)
		require.Len(t, events, 2, "a cgroup's own limit is no event")
		assert.Equal(t, runtime.Event{Object: v1.ObjectReference{Kind: "Node", Name: "n"}, Type: "Warning", Reason: "SystemOOM",
			Message: "System OOM encountered, victim process: java, pid: 99"}, events[0])
		assert.Equal(t, "System OOM encountered", events[1].Message, "the process is not known")
		cancel()
		assert.NoError(t, <-done)
	})
}

// counters implements oom.Cgroups.
type counters func() (map[string]uint64, error)

func (c counters) OOMKills() (map[string]uint64, error) { return c() }

func TestALogThatCannotBeReadIsAnErrorUnlessThereAreCounters(t *testing.T) { // oom-1, oom-3
	synctest.Test(t, func(t *testing.T) {
		denied := func() (io.ReadCloser, error) { return nil, errors.New("not permitted") }
		w, err := oom.New(oom.Config{Kmsg: denied})
		require.NoError(t, err)
		assert.ErrorContains(t, w.Run(t.Context()), "not permitted")

		looks := []map[string]uint64{{"/a": 5}, {"/a": 7, "/b": 1, "/c": 0}, nil, {"/a": 1, "/b": 1}}
		var kills []oom.Kill
		w, err = oom.New(oom.Config{
			Kmsg: denied, Handle: func(k oom.Kill) { kills = append(kills, k) },
			Cgroups: counters(func() (map[string]uint64, error) {
				look := looks[0]
				if looks = looks[1:]; look == nil {
					return nil, errors.New("gone")
				}
				return look, nil
			}),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(31 * time.Second)
		cancel()
		assert.NoError(t, <-done)
		assert.Equal(t, "[2 processes of /a killed for memory 1 processes of /b killed for memory 1 processes of /a killed for memory]", fmt.Sprint(kills))
	})
	synctest.Test(t, func(t *testing.T) {
		log := &kmsg{make(chan string), make(chan struct{})}
		close(log.records)
		w, err := oom.New(oom.Config{Kmsg: func() (io.ReadCloser, error) { return log, nil }})
		require.NoError(t, err)
		assert.ErrorIs(t, w.Run(t.Context()), io.EOF)
	})
}

func TestAWatcherNeedsSomethingToWatch(t *testing.T) {
	_, err := oom.New(oom.Config{})
	assert.ErrorContains(t, err, "nothing to watch")
	_, err = oom.New(oom.Config{Kmsg: oom.OpenKmsg, Period: -1})
	assert.ErrorContains(t, err, "negative")
}

// All rules of section 9.
var _ = map[string]string{
	"oom-1": "TestALogThatCannotBeReadIsAnErrorUnlessThereAreCounters",
	"oom-2": "TestTheMachineOutOfMemoryIsAnEvent",
	"oom-3": "TestALogThatCannotBeReadIsAnErrorUnlessThereAreCounters: counters per cgroup; the metric is built on Handle",
}
