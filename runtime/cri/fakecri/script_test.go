package fakecri_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

const wholeScript = `
containers:
  web:
    logs: [{text: "hello %d", every: 1s}]
    endpoints: [{port: 8080, http: true, readyAfter: 5s, unreadyAfter: 1m}]
    memory: 64Mi
    cpu: [{at: 0s, value: 100m}, {at: 1m, value: 1.5}]
    disk: {points: [{value: 1k}, {at: 10s, value: 2k}], repeat: true}
    execRules: [{command: [sleep, 5], stdout: out, stderr: err, exitCode: 3, takes: 5s, fails: 2}]
    startDelay: 10ms
    startError: no shim
    stopDelay: 1s
    stopCode: 4
    ignoreTerm: true
    message: bye
  crash: {runFor: 2s, exitCode: 1, crashes: 3}
  oom: {runFor: 0.5s, oom: true}
  killed: {runFor: 1h, signal: 9}
images:
  busybox: {pullTime: 2s, layers: [{name: base, size: 4Mi}], run: {runFor: 1s}}
  nginx: {pullError: no route, pullFails: 2, auth: "me:secret", user: "101", present: true, pinned: true}
  "*": {pullError: not found}
faults:
  - {method: StartContainer, container: web, probability: 0.1, error: no shim, code: Unavailable}
  - {method: ListContainers, stale: 5s, after: 3, count: 2}
  - {pod: uid-1, delay: 1s, lost: true}
  - {image: busybox, hang: true}
`

func level(v float64) fakecri.Curve { return fakecri.Curve{Points: []fakecri.Point{{Value: v}}} }

func TestAScriptIsTheSameInYAMLAndInGo(t *testing.T) {
	s, err := fakecri.ParseScript([]byte(wholeScript))
	require.NoError(t, err)
	assert.Equal(t, fakecri.Script{
		Containers: map[string]fakecri.Behavior{
			"web": {
				Logs:       []fakecri.LogLine{{Text: "hello %d", Every: time.Second}},
				Endpoints:  []fakecri.Endpoint{{Port: 8080, HTTP: true, ReadyAfter: 5 * time.Second, UnreadyAfter: time.Minute}},
				Memory:     level(64 << 20),
				CPU:        fakecri.Curve{Points: []fakecri.Point{{Value: 0.1}, {At: time.Minute, Value: 1.5}}},
				Disk:       fakecri.Curve{Points: []fakecri.Point{{Value: 1000}, {At: 10 * time.Second, Value: 2000}}, Repeat: true},
				ExecRules:  []fakecri.ExecRule{{Command: []string{"sleep", "5"}, Stdout: "out", Stderr: "err", ExitCode: 3, Takes: 5 * time.Second, Fails: 2}},
				StartDelay: 10 * time.Millisecond, StartError: "no shim", StopDelay: time.Second, StopCode: 4, IgnoreTerm: true, Message: "bye",
			},
			"crash":  {RunFor: 2 * time.Second, ExitCode: 1, Crashes: 3},
			"oom":    {RunFor: 500 * time.Millisecond, OOM: true},
			"killed": {RunFor: time.Hour, Signal: 9},
		},
		Images: map[string]fakecri.ScriptImage{
			"busybox": {ImageBehavior: fakecri.ImageBehavior{PullTime: 2 * time.Second, Layers: []fakecri.Layer{{Name: "base", Size: 4 << 20}}}, Run: &fakecri.Behavior{RunFor: time.Second}},
			"nginx":   {ImageBehavior: fakecri.ImageBehavior{PullError: "no route", PullFails: 2, Auth: "me:secret", User: "101", Present: true, Pinned: true}},
			"*":       {ImageBehavior: fakecri.ImageBehavior{PullError: "not found"}},
		},
		Faults: []fakecri.FaultRule{
			{Method: "StartContainer", Container: "web", Probability: 0.1, Error: "no shim", Code: "Unavailable"},
			{Method: "ListContainers", Stale: 5 * time.Second, After: 3, Count: 2},
			{Pod: "uid-1", Delay: time.Second, Lost: true},
			{Image: "busybox", Hang: true},
		},
	}, s)
}

func TestAnEmptyScriptIsValid(t *testing.T) {
	for _, text := range []string{"", "# nothing", "{}", "---\n", "containers:", "containers: {}\nimages:\nfaults: []"} {
		s, err := fakecri.ParseScript([]byte(text))
		require.NoError(t, err, "%q", text)
		assert.Empty(t, s.Containers)
		assert.Empty(t, s.Images)
		assert.Empty(t, s.Faults)
	}
}

func TestAMistakeInAScriptIsNamedWithItsPlace(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{"container: {}", "container: there is no such field"},
		{"containers: {web: {runfor: 1s}}", "containers.web.runfor: there is no such field"},
		{"containers: {web: {RunFor: 1s}}", "containers.web.RunFor: there is no such field"},
		{"containers: {web: {exec: x}}", "containers.web.exec: there is no such field"},
		{"containers: {a.b: {run: 1}}", `containers["a.b"].run: there is no such field`},
		{"containers: {web: 5}", "containers.web: 5 is not a map of fields"},
		{"containers: [web]", `containers: ["web"] is not a map`},
		{"[]", "the script: [] is not a map of fields"},
		{"containers: {web: {runFor: 5}}", `containers.web.runFor: 5 is not a duration such as "90s"`},
		{"containers: {web: {runFor: 5 s}}", `containers.web.runFor: "5 s" is not a duration`},
		{"containers: {web: {runFor: -1s}}", "containers.web.runFor: -1s is negative"},
		{"containers: {web: {runFor: 1000000h}}", "containers.web.runFor: 1000000h0m0s is more than ten years"},
		{"containers: {web: {runFor: 1s, exitCode: 256}}", "containers.web.exitCode: 256 is no exit code"},
		{"containers: {web: {runFor: 1s, exitCode: 99999999999}}", "containers.web.exitCode: 99999999999 is not a whole number of 32 bits"},
		{"containers: {web: {runFor: 1s, exitCode: 1.5}}", "containers.web.exitCode: 1.5 is not a whole number"},
		{"containers: {web: {runFor: 1s, oom: 1}}", "containers.web.oom: 1 is not true or false"},
		{"containers: {web: {exitCode: 1}}", "containers.web.runFor: required by"},
		{"containers: {web: {runFor: 1s, signal: 65}}", "containers.web.signal: 65 is no signal"},
		{"containers: {web: {runFor: 1s, crashes: -1}}", "containers.web.crashes: -1 is negative"},
		{"containers: {web: {logs: {text: x}}}", "containers.web.logs: {\"text\":\"x\"} is not a list"},
		{"containers: {web: {logs: [{text: x}, {texts: y}]}}", "containers.web.logs[1].texts: there is no such field"},
		{"containers: {web: {logs: [{every: 1s}, {text: x}]}}", "containers.web.logs[0]: has every and no times"},
		{"containers: {web: {logs: [{every: 1us}]}}", "containers.web.logs[0].every: 1µs is less than 1ms"},
		{"containers: {web: {logs: [{times: 2}]}}", "containers.web.logs[0].times: requires every"},
		{"containers: {web: {logs: [{text: [x]}]}}", `containers.web.logs[0].text: ["x"] is not a text`},
		{"containers: {web: {logs: [{text: \"a\\nb\"}]}}", "containers.web.logs[0].text: has a newline"},
		{"containers: {web: {memory: lots}}", `containers.web.memory: "lots" is not a number`},
		{"containers: {web: {memory: -1}}", "containers.web.memory.points[0].value: -1 is not from 0 to"},
		{"containers: {web: {memory: 1e400}}", "containers.web.memory"},
		{"containers: {web: {memory: 10Ei}}", "containers.web.memory.points[0].value"},
		{"containers: {web: {cpu: [{at: 5s}, {at: 1s}]}}", "containers.web.cpu.points[1].at: 1s is before the point before it"},
		{"containers: {web: {cpu: {points: [{value: 1}], repeat: true}}}", "containers.web.cpu.repeat: needs a point later than 0"},
		{"containers: {web: {endpoints: [{port: 65536}]}}", "containers.web.endpoints[0].port: 65536 is no port"},
		{"containers: {web: {endpoints: [{port: 80}, {port: 80}]}}", "containers.web.endpoints[1].port: duplicate value 80"},
		{"containers: {web: {endpoints: [{readyAfter: 5s, unreadyAfter: 5s}]}}", "containers.web.endpoints[0].unreadyAfter: 5s is not after readyAfter"},
		{"containers: {web: {execRules: [{fails: -1}]}}", "containers.web.execRules[0].fails: -1 is negative"},
		{"images: {busybox: {layers: [{name: base}]}}", "images.busybox.layers[0].size: 0 is not from 1 to"},
		{"images: {busybox: {layers: [{size: -1}]}}", "images.busybox.layers[0].size: -1 is not a whole number from 0"},
		{"images: {busybox: {layers: [{size: 2Pi}]}}", "images.busybox.layers[0].size: 2251799813685248 is not from 1 to"},
		{"images: {a: {layers: [{name: x, size: 1}]}, b: {layers: [{name: x, size: 2}]}}", `images.b.layers[0]: "x" has 2 bytes here, and 1 elsewhere`},
		{"images: {a: {layers: [{name: x, size: 1}, {name: x, size: 1}]}}", `images.a.layers[1].name: duplicate value "x"`},
		{"images: {Busybox: {}}", "images.Busybox: invalid reference format"},
		{"images: {busybox: {}, docker.io/library/busybox: {}}", "is the same image as busybox"},
		{"images: {'busybox:latest': {}, 'docker.io/busybox:latest': {}}", "is the same image as busybox:latest"},
		{"images: {a: {auth: me}}", "images.a.auth: is not user:password"},
		{"images: {a: {pullFails: -1}}", "images.a.pullFails: -1 is negative"},
		{"images: {a: {run: {runFor: -1s}}}", "images.a.run.runFor: -1s is negative"},
		{"faults: [{method: Start}]", `faults[0].method: the CRI has no method "Start"`},
		{"faults: [{method: Close}]", `faults[0].method: the CRI has no method "Close"`},
		{"faults: [{method: StartContainer, stale: 1s}]", "faults[0].stale: only ListPodSandbox, ListContainers, ListImages can be"},
		{"faults: [{probability: 1.1}]", "faults[0].probability: 1.1 is not from 0 to 1"},
		{"faults: [{count: -1}]", "faults[0].count: -1 is negative"},
		{"faults: [{after: -1}]", "faults[0].after: -1 is negative"},
		{"faults: [{code: OK}]", `faults[0].code: "OK" is no code`},
		{"faults: [{hang: true, error: x}]", "faults[0].hang: a call that hangs has no error of its own"},
		{"faults: [{delay: -1s}]", "faults[0].delay: -1s is negative"},
		{"containers: {web: {}, web: {}}", `"web" already set in map`},
		{"containers: {", "yaml"},
		{"{}\n---\n{}", "has more than one document"},
		{"{} }", "yaml"},
		{"#" + strings.Repeat(" ", 1<<20), "is longer than 1048576 bytes"},
	} {
		t.Run(test.script[:min(len(test.script), 70)], func(t *testing.T) {
			_, err := fakecri.ParseScript([]byte(test.script))
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "fakecri: script: ")
		})
	}
}

func TestAllMistakesOfAScriptAreReported(t *testing.T) {
	_, err := fakecri.ParseScript([]byte("containers: {b: {runFor: -1s}, a: {stopDelay: -2s}}\nfaults: [{count: -1}]"))
	assert.EqualError(t, err, "fakecri: script: containers.a.stopDelay: -2s is negative\ncontainers.b.runFor: -1s is negative\nfaults[0].count: -1 is negative")
}

func TestABehaviorAloneIsThatOfAnAnnotation(t *testing.T) {
	b, err := fakecri.ParseBehavior([]byte("{runFor: 2s, exitCode: 1}"))
	require.NoError(t, err)
	assert.Equal(t, fakecri.Behavior{RunFor: 2 * time.Second, ExitCode: 1}, b)
	_, err = fakecri.ParseBehavior([]byte("{runFor: 2, exitCode: 1}"))
	assert.EqualError(t, err, `fakecri: behavior: runFor: 2 is not a duration such as "90s"`)
}

func TestRulesOfFaultsApplyInOrder(t *testing.T) {
	s, err := fakecri.ParseScript([]byte(`
faults:
  - {method: StartContainer, container: web, after: 1, count: 2, error: no shim, code: Unavailable}
  - {method: StartContainer, delay: 1s}
  - {image: busybox}
  - {method: ListContainers, code: Internal}
`))
	require.NoError(t, err)
	fault := s.Config(1).Faults
	start := fakecri.Call{Method: "StartContainer", Pod: "p", Container: "web"}
	var errs []codes.Code
	var delays []time.Duration
	for range 5 {
		f := fault(start)
		errs, delays = append(errs, status.Code(f.Err)), append(delays, f.Delay)
	}
	assert.Equal(t, []codes.Code{codes.OK, codes.Unavailable, codes.Unavailable, codes.OK, codes.OK}, errs)
	assert.Equal(t, []time.Duration{time.Second, 0, 0, time.Second, time.Second}, delays)
	assert.EqualError(t, fault(fakecri.Call{Method: "PullImage", Image: "docker.io/library/busybox:latest"}).Err, "rpc error: code = Unknown desc = fault of a script")
	assert.Equal(t, codes.Internal, status.Code(fault(fakecri.Call{Method: "ListContainers"}).Err))
	assert.Zero(t, fault(fakecri.Call{Method: "PullImage", Image: "nginx"}))
	assert.Zero(t, fault(fakecri.Call{Method: "ListPodSandbox"}))
}

func TestChanceDependsOnTheSeedOnly(t *testing.T) {
	s := fakecri.Script{Faults: []fakecri.FaultRule{{Probability: 0.3}}}
	of := func(seed uint64, pod string, others int) (hits []bool) {
		fault := s.Config(seed).Faults
		for range 400 {
			hits = append(hits, fault(fakecri.Call{Method: "StartContainer", Pod: pod}).Err != nil)
			for range others {
				fault(fakecri.Call{Method: "StartContainer", Pod: "other"})
			}
		}
		return hits
	}
	once := of(7, "a", 0)
	assert.Equal(t, once, of(7, "a", 3))
	assert.NotEqual(t, once, of(8, "a", 0))
	assert.NotEqual(t, once, of(7, "b", 0))
	n := 0
	for _, hit := range once {
		if hit {
			n++
		}
	}
	assert.InDelta(t, 120, n, 40)
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(wholeScript))
	f.Add([]byte("containers: {web: {memory: [{at: 1s, value: 1e3}]}}"))
	f.Add([]byte("images: {a: {layers: [{size: 1E}]}}"))
	f.Add([]byte("faults: [{probability: .inf}]"))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("? {a: b}\n: c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := fakecri.ParseScript(data)
		if err != nil {
			if s.Containers != nil || s.Images != nil || s.Faults != nil {
				t.Fatal("something came with the error")
			}
			return
		}
		if _, err := fakecri.New(s.Config(1)); err != nil {
			t.Fatal("what can be read cannot be used:", err)
		}
	})
}
