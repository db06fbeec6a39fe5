package fake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// texts are the canonical texts of behaviors.
var texts = map[string]fake.Behavior{
	"run":                              {},
	"queue=1s,start=1m":                {QueueDelay: time.Second, StartDelay: time.Minute},
	"fail=CreateContainerError":        {Fail: &fake.Failure{Reason: "CreateContainerError"}},
	`fail="ErrImagePull: not here"@5s`: {Fail: &fake.Failure{Reason: "ErrImagePull", Message: "not here", For: 5 * time.Second}},
	"exit=0":                           {Exit: &fake.Exit{}},
	"exit=137@1h,reason=Evicted":       {Exit: &fake.Exit{Code: 137, After: time.Hour, Reason: "Evicted"}},
	"oom@1m30s,crashes=3":              {Exit: &fake.Exit{Code: 137, After: 90 * time.Second, Reason: fake.OOMKilled, Crashes: 3}},
	`exit=1,message="a, \"b\"; c@d"`:   {Exit: &fake.Exit{Code: 1, Message: `a, "b"; c@d`}},
	"stop=2s,stopCode=4,ignoreTERM":    {StopDelay: 2 * time.Second, StopCode: 4, IgnoreTERM: true},
	"ready=1.5s,flap=1s":               {ReadyAfter: 1500 * time.Millisecond, Flap: time.Second},
	"neverReady,started=1s,unhealthy=2s,liveness,evict@3s,version=2": {
		NeverReady: true, StartedAfter: time.Second, UnhealthyAfter: 2 * time.Second, Liveness: true, EvictAfter: 3 * time.Second, Version: 2,
	},
	`log="hello %d"@5s;every=1s;times=3;stderr,log=bye`: {Logs: []fake.LogLine{{Text: "hello %d", After: 5 * time.Second, Every: time.Second, Times: 3, Err: true}, {Text: "bye"}}},
	"http=8080@5s;until=1m,tcp=80":                      {Endpoints: []fake.Endpoint{{HTTP: true, Port: 8080, ReadyAfter: 5 * time.Second, UnreadyAfter: time.Minute}, {Port: 80}}},
	"memory=67108864,cpu=0.25,disk=1000;2000@10s;repeat": {
		Memory: fake.Curve{Points: []fake.Point{{Value: 64 << 20}}}, CPU: fake.Curve{Points: []fake.Point{{Value: 0.25}}},
		Disk: fake.Curve{Points: []fake.Point{{Value: 1000}, {At: 10 * time.Second, Value: 2000}}, Repeat: true},
	},
	`command="cat x";stdout=ok;stderr="n o";code=3;takes=5s;fails=2,command=""`: {Commands: []fake.Command{
		{Prefix: "cat x", Stdout: "ok", Stderr: "n o", ExitCode: 3, Takes: 5 * time.Second, Fails: 2}, {},
	}},
}

func TestABehaviorHasOneText(t *testing.T) {
	for text, want := range texts {
		got, err := fake.ParseBehavior(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, text, want.String())
		assert.NoError(t, want.Check())
	}
}

func TestOptionsAreSeparatedByCommasOrBlanks(t *testing.T) {
	for _, text := range []string{"memory=64Mi cpu=250m", "cpu=250m, memory=64Mi", "\nmemory=64Mi\n  cpu=250m\n", "run,memory=64Mi,cpu=0.25,"} {
		got, err := fake.ParseBehavior(text)
		require.NoError(t, err)
		assert.Equal(t, "memory=67108864,cpu=0.25", got.String())
	}
}

func TestAMistakeInABehaviorIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"runs":                       "unknown option; want queue, start",
		"ready=1s,ready=2s":          `"ready=2s": duplicate option`,
		"ready":                      "is not a duration",
		"ready=2":                    `"2" is not a duration, such as 2s`,
		"ready=-1s":                  "-1s is negative",
		"ready=1000000h":             "more than ten years",
		"ready=1s@2s":                "unexpected value, time or option",
		"exit=256":                   `"256" is not a number from 0 to 255`,
		"exit=1.5":                   `"1.5" is not a number from 0 to 255`,
		"exit=1,oom":                 "exit and oom exclude each other",
		"crashes=1":                  "crashes require exit or oom",
		"neverReady,flap=1s":         "neverReady excludes ready and flap",
		"flap=1us":                   "less than 1ms",
		"fail=":                      "want a reason",
		"ignoreTERM=1":               "unexpected value",
		"evict=5s":                   "want a time: evict@5s",
		"log=a;every=1s,log=b":       "the lines after it are never printed",
		"log=a;times=2":              "times requires every",
		"log=a;every=1us":            "less than 1ms",
		`log="a\nb"`:                 "without newline",
		`log="a`:                     "invalid quoted text",
		`log="a"b`:                   `unexpected "b" after the quoted text`,
		"memory=lots":                `"lots" is not a number from 0 to`,
		"memory=-1":                  `"-1" is not a number`,
		"memory=1e400":               "is not a number",
		"cpu=NaN":                    "is not a number",
		"cpu=1@5s;2@1s":              "1s is before the point before it",
		"cpu=1;repeat":               "repeat needs a point later than 0",
		"http=65536":                 `"65536" is not a number from 0 to 65535`,
		"http=80,tcp=80":             "duplicate port 80",
		"http=80@5s;until=5s":        "5s is not after 5s",
		"command=a;fails=-1":         `"-1" is not a number`,
		strings.Repeat(" ", 1<<20+1): "longer than 1048576 bytes",
	} {
		got, err := fake.ParseBehavior(text)
		assert.ErrorContains(t, err, want, "%.40q", text)
		assert.Zero(t, got)
	}
	assert.ErrorContains(t, fake.Behavior{Exit: &fake.Exit{Code: -1}}.Check(), "is not a number from 0 to 255")
	assert.ErrorContains(t, fake.Behavior{CPU: fake.Curve{Repeat: true}}.Check(), "is not a number")
	assert.EqualError(t, fake.Behavior{Version: 1, StartDelay: 1}.Only("start"), `behavior "start=1ns,version=1": version is not supported; want start`)
}

func TestReadinessFlaps(t *testing.T) {
	b := fake.Behavior{ReadyAfter: 2 * time.Second, Flap: time.Second}
	for age, want := range map[time.Duration]bool{0: false, 2 * time.Second: true, 3 * time.Second: false, 4500 * time.Millisecond: true} {
		ready, _ := b.Ready(age)
		assert.Equal(t, want, ready, age)
	}
	_, next := b.Ready(3200 * time.Millisecond)
	assert.Equal(t, 800*time.Millisecond, next)
	ready, next := (&fake.Behavior{NeverReady: true}).Ready(time.Hour)
	assert.False(t, ready)
	assert.Zero(t, next)
}

const script = `# a node
container web
  log="hello %d";every=1s
  # its port
  http=8080@5s memory=64Mi
container crash exit=1@2s,crashes=3

image busybox pull=2s layer=4Mi;name=base layer=1k
image nginx error="no route" fails=2 auth=me:secret user=101 present pinned
image * absent
run busybox exit=0@1m
fault StartContainer container=web probability=0.1 error="no shim";code=Unavailable
fault ListContainers after=3 count=2 stale=5s
fault * pod=uid-1 delay=1s lost
fault PullImage image=busybox hang
`

func TestAScriptHasOneText(t *testing.T) {
	s, err := fake.ParseScript(script)
	require.NoError(t, err)
	assert.Equal(t, fake.Script{
		Behaviors: fake.Behaviors{
			Containers: map[string]fake.Behavior{
				"web": {
					Logs: []fake.LogLine{{Text: "hello %d", Every: time.Second}}, Memory: fake.Curve{Points: []fake.Point{{Value: 64 << 20}}},
					Endpoints: []fake.Endpoint{{HTTP: true, Port: 8080, ReadyAfter: 5 * time.Second}},
				},
				"crash": {Exit: &fake.Exit{After: 2 * time.Second, Code: 1, Crashes: 3}},
			},
			Images: map[string]fake.Behavior{"busybox": {Exit: &fake.Exit{After: time.Minute}}},
		},
		Images: map[string]fake.Image{
			"busybox": {PullTime: 2 * time.Second, Layers: []fake.Layer{{Name: "base", Size: 4 << 20}, {Size: 1000}}},
			"nginx":   {PullError: "no route", PullFails: 2, Auth: "me:secret", User: "101", Present: true, Pinned: true},
			"*":       {Absent: true},
		},
		Faults: []fake.Rule{
			{Call: fake.Call{Method: "StartContainer", Container: "web"}, Probability: 0.1, Fault: fake.Fault{Err: &fake.Error{Code: "Unavailable", Message: "no shim"}}},
			{Call: fake.Call{Method: "ListContainers"}, After: 3, Count: 2, Fault: fake.Fault{Stale: 5 * time.Second}},
			{Call: fake.Call{Pod: "uid-1"}, Fault: fake.Fault{Delay: time.Second, Lost: true}},
			{Call: fake.Call{Method: "PullImage", Image: "busybox"}, Fault: fake.Fault{Hang: true}},
		},
	}, s)
	again, err := fake.ParseScript(s.String())
	require.NoError(t, err)
	assert.Equal(t, s, again)
}

func TestMistakesOfAScriptAreNamedWithTheirLines(t *testing.T) {
	for text, want := range map[string]string{
		"pod web":                               `fake: line 1: "pod": want container, image, run or fault`,
		"container":                             `fake: line 1: "container": want a name`,
		"\n\ncontainer web\n\tready":            `fake: line 3: web: "ready"`,
		"container web\ncontainer web":          "fake: line 2: web: specified twice",
		"image a layer=0":                       "a layer has at least one byte",
		"image a layer=-1":                      `"-1" is not a number`,
		"image a layer=2000Ti":                  "is not a number from 0 to",
		"image a layer=1;name=x layer=1;name=x": `duplicate layer "x"`,
		"image a auth=me":                       "auth is not user:password",
		"fault":                                 "want the name of a method",
		"fault pod=a":                           "want the name of a method",
		"fault * probability=1.1":               `"1.1" is not a number from 0 to 1`,
		"fault * hang error=x":                  "a call that hangs has no error",
		"fault * delay=-1s":                     "-1s is negative",
		"fault * count=-1":                      `"-1" is not a number`,
		strings.Repeat("#", 1<<20+1):            "longer than 1048576 bytes",
		"container a exit=x\nrun b exit=y":      "fake: line 2: b: ",
	} {
		s, err := fake.ParseScript(text)
		assert.ErrorContains(t, err, want, "%.40q", text)
		assert.Zero(t, s)
	}
}

func TestRulesApplyInOrder(t *testing.T) {
	s, err := fake.ParseScript(`
fault StartContainer container=web after=1 count=2 error="no shim";code=Unavailable
fault StartContainer delay=1s
fault * image=busybox
`)
	require.NoError(t, err)
	faults := fake.Faults(s.Faults, 1)
	var got []string
	for range 5 {
		f := faults(fake.Call{Method: "StartContainer", Pod: "p", Container: "web"})
		got = append(got, fmt.Sprint(f.Err, " ", f.Delay))
	}
	assert.Equal(t, []string{"<nil> 1s", "no shim 0s", "no shim 0s", "<nil> 1s", "<nil> 1s"}, got)
	assert.EqualError(t, faults(fake.Call{Method: "PullImage", Image: "busybox"}).Err, "injected fault")
	assert.Zero(t, faults(fake.Call{Method: "PullImage", Image: "nginx"}))
}

func TestProbabilityDependsOnTheSeedOnly(t *testing.T) {
	rules := []fake.Rule{{Probability: 0.3}}
	of := func(seed uint64, pod string, others int) (hits []bool) {
		faults := fake.Faults(rules, seed)
		for range 400 {
			hits = append(hits, faults(fake.Call{Method: "StartContainer", Container: pod}).Err != nil)
			for range others {
				faults(fake.Call{Method: "StartContainer", Container: "other"})
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

func TestAFaultIsAppliedToACall(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fault  fake.Fault
		effect bool
		takes  time.Duration
		err    error
	}{
		"none":               {fake.Fault{}, true, 0, nil},
		"delay":              {fake.Fault{Delay: time.Second}, true, time.Second, nil},
		"longer than ctx":    {fake.Fault{Delay: time.Hour}, false, time.Minute, context.DeadlineExceeded},
		"error":              {fake.Fault{Err: broken}, false, 0, broken},
		"hang":               {fake.Fault{Hang: true}, false, time.Minute, context.DeadlineExceeded},
		"lost":               {fake.Fault{Lost: true}, true, 0, fake.ErrLost},
		"lost with an error": {fake.Fault{Lost: true, Err: broken}, true, 0, broken},
		"lost and hanging":   {fake.Fault{Lost: true, Hang: true}, true, time.Minute, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun, effect := time.Now(), false
				err := c.fault.Do(ctx, func(time.Duration) error { effect = true; return nil })
				assert.ErrorIs(t, err, c.err)
				assert.Equal(t, c.effect, effect)
				assert.Equal(t, c.takes, time.Since(begun))
			})
		})
	}
	var age time.Duration
	require.NoError(t, fake.Fault{Stale: time.Second}.Do(t.Context(), func(a time.Duration) error { age = a; return nil }))
	assert.Equal(t, time.Second, age)
}

func FuzzParseBehavior(f *testing.F) {
	for text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := fake.ParseBehavior(text)
		if err != nil {
			return
		}
		again, err := fake.ParseBehavior(b.String())
		if err != nil || again.String() != b.String() {
			t.Fatalf("%q is formatted as %q, which is parsed as %q: %v", text, b, again, err)
		}
	})
}

func FuzzParseScript(f *testing.F) {
	f.Add(script)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fake.ParseScript(text)
		if err != nil {
			return
		}
		again, err := fake.ParseScript(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is formatted as %q, which is parsed as %q: %v", text, s, again, err)
		}
	})
}

func BenchmarkParseBehavior(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fake.ParseBehavior("exit=1@5s,crashes=3,ready=2s"); err != nil {
			b.Fatal(err)
		}
	}
}
