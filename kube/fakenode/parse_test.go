package fakenode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestABehaviourIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]fakenode.Behaviour{
		"run":                       {},
		"ready=2s":                  {ReadyAfter: 2 * time.Second},
		"never-ready":               {NeverReady: true},
		"ready=1s,flap=500ms":       {ReadyAfter: time.Second, Flap: 500 * time.Millisecond},
		"exit=1@5s":                 {Exits: true, Code: 1, ExitAfter: 5 * time.Second},
		"exit=0@0s":                 {Exits: true},
		"oom@1m0s,crashes=3":        {Exits: true, OOM: true, Code: 137, ExitAfter: time.Minute, Crashes: 3},
		"start=1s,stop=2s":          {StartDelay: time.Second, StopDelay: 2 * time.Second},
		"stubborn":                  {Stubborn: true},
		"no-image":                  {NoImage: true},
		"no-image=5s":               {NoImage: true, NoImageFor: 5 * time.Second},
		"fail=CreateContainerError": {Fail: "CreateContainerError"},
		"evict@5s":                  {Evict: true, EvictAfter: 5 * time.Second},
	} {
		b, err := fakenode.ParseBehaviour(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, b, text)
		assert.Equal(t, text, b.String())
	}
	b, err := fakenode.ParseBehaviour(" exit=3 , ready=1s ")
	require.NoError(t, err)
	assert.Equal(t, "ready=1s,exit=3@0s", b.String())
}

func TestABehaviourThatCannotBeReadSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "there is no such word; there are run, ready=2s",
		"reddy=2s":            `"reddy=2s": there is no such word`,
		"ready":               `"" is no time such as 2s`,
		"ready=2":             `"2" is no time such as 2s`,
		"ready=-2s":           "negative",
		"exit":                "an exit has a code",
		"exit=1@":             `"" is no time`,
		"exit=99999999999":    "an exit has a code",
		"oom=3@5s":            "it has a time only",
		"exit=1,oom":          "exclude each other",
		"crashes=3":           "crashes needs exit or oom",
		"exit=1,crashes=0":    "a number from 1 on",
		"flap=1ns":            "a millisecond is the least",
		"never-ready,flap=1s": "never-ready excludes",
		"never-ready=1s":      "it stands alone",
		"ready=1s,ready=2s":   "it is said twice",
		"fail":                "it has a reason",
	} {
		_, err := fakenode.ParseBehaviour(text)
		require.Error(t, err, text)
		assert.ErrorContains(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), "fakenode: behaviour "), err)
	}
}

func FuzzParseBehaviour(f *testing.F) {
	for _, text := range []string{"run", "ready=2s,exit=1@5s,crashes=3", "oom@5s,evict@1h", "no-image=5s,fail=X,start=1s,stop=2s,stubborn", "never-ready", "flap=1s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := fakenode.ParseBehaviour(text)
		if err != nil {
			return
		}
		again, err := fakenode.ParseBehaviour(b.String())
		require.NoError(t, err, b.String())
		assert.Equal(t, b.String(), again.String())
	})
}
