package fakenode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestABehaviorIsParsed(t *testing.T) {
	for text, want := range map[string]fakenode.Behavior{
		"run":                       {},
		"ready=2s":                  {ReadyAfter: 2 * time.Second},
		"never-ready":               {NeverReady: true},
		"ready=1s,flap=500ms":       {ReadyAfter: time.Second, Flap: 500 * time.Millisecond},
		"exit=1@5s":                 {Exit: &fakenode.Exit{Code: 1, After: 5 * time.Second}},
		"exit=0@0s":                 {Exit: &fakenode.Exit{}},
		"oom@1m0s,crashes=3":        {Exit: &fakenode.Exit{OOM: true, Code: 137, After: time.Minute, Crashes: 3}},
		"start=1s,stop=2s":          {StartDelay: time.Second, StopDelay: 2 * time.Second},
		"stubborn":                  {IgnoreTERM: true},
		"no-image":                  {NoImage: true},
		"no-image=5s":               {NoImage: true, NoImageFor: 5 * time.Second},
		"fail=CreateContainerError": {Fail: "CreateContainerError"},
		"evict@5s":                  {Evict: true, EvictAfter: 5 * time.Second},
	} {
		b, err := fakenode.ParseBehavior(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, b, text)
		assert.Equal(t, text, b.String())
	}
	for _, empty := range []string{"", "  "} {
		b, err := fakenode.ParseBehavior(empty)
		require.NoError(t, err)
		assert.Equal(t, "run", b.String())
	}
	b, err := fakenode.ParseBehavior(" exit=3 , ready=1s ")
	require.NoError(t, err)
	assert.Equal(t, "ready=1s,exit=3@0s", b.String())
}

func TestAnInvalidBehaviorIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"run,":                "unknown option; want run, ready=2s",
		"reddy=2s":            `"reddy=2s": unknown option`,
		"ready":               `"" is not a duration, such as 2s`,
		"ready=2":             `"2" is not a duration, such as 2s`,
		"ready=-2s":           "negative",
		"exit":                "want an exit code",
		"exit=1@":             `"" is not a duration`,
		"exit=99999999999":    "want an exit code",
		"oom=3@5s":            "want only a time",
		"exit=1,oom":          "exclude each other",
		"crashes=3":           "crashes requires exit or oom",
		"exit=1,crashes=0":    "a number of 1 or more",
		"flap=1ns":            "want at least 1ms",
		"never-ready,flap=1s": "never-ready excludes",
		"never-ready=1s":      "want no value",
		"ready=1s,ready=2s":   "duplicate option",
		"fail":                "want a reason",
	} {
		_, err := fakenode.ParseBehavior(text)
		require.Error(t, err, text)
		assert.ErrorContains(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), "fakenode: behavior "), err)
	}
}

func FuzzParseBehavior(f *testing.F) {
	for _, text := range []string{"run", "ready=2s,exit=1@5s,crashes=3", "oom@5s,evict@1h", "no-image=5s,fail=X,start=1s,stop=2s,stubborn", "never-ready", "flap=1s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := fakenode.ParseBehavior(text)
		if err != nil {
			return
		}
		again, err := fakenode.ParseBehavior(b.String())
		require.NoError(t, err, b.String())
		assert.Equal(t, b.String(), again.String())
	})
}
