package runtime_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestErrHasTheTextOfTheKubelet(t *testing.T) { // rt-74
	refused := errors.New("registry refused")
	for name, tc := range map[string]struct {
		actions []runtime.Action
		want    string
	}{
		"nothing was done":     {nil, ""},
		"all went well":        {[]runtime.Action{{Kind: runtime.CreatePodSandbox, Target: "web_default"}, {Kind: runtime.StartContainer, Target: "web"}}, ""},
		"a reason, no failure": {[]runtime.Action{{Kind: runtime.StartContainer, Target: "web", Reason: "ErrImagePull", Message: "m"}}, ""},
		"one failed": {
			[]runtime.Action{
				{Kind: runtime.CreatePodSandbox, Target: "web_default"},
				{Kind: runtime.StartContainer, Target: "web", Err: refused, Reason: "ErrImagePull", Message: `pull "i": refused`},
			},
			`failed to "StartContainer" for "web" with ErrImagePull: "pull \"i\": refused"`,
		},
		"without a reason": {
			[]runtime.Action{{Kind: runtime.KillPodSandbox, Target: "web_default", Err: refused}},
			`failed to "KillPodSandbox" for "web_default": registry refused`,
		},
		"two failed, in order": {
			[]runtime.Action{
				{Kind: runtime.StartContainer, Target: "b", Err: refused, Reason: "CrashLoopBackOff", Message: "back-off 10s"},
				{Kind: runtime.StartContainer, Target: "a", Err: refused, Reason: "CreateContainerError", Message: "no"},
			},
			"failed to \"StartContainer\" for \"b\" with CrashLoopBackOff: \"back-off 10s\"\n" +
				"failed to \"StartContainer\" for \"a\" with CreateContainerError: \"no\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := runtime.SyncResult{Actions: tc.actions}.Err()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
			assert.ErrorIs(t, err, refused, "errors.Is finds the cause")
			assert.NotErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

func TestErrGivesTheFailedActionBack(t *testing.T) {
	failed := runtime.Action{Kind: runtime.StartContainer, Target: "web", Err: fs.ErrNotExist, Reason: "CreateContainerError", Message: "m"}
	err := runtime.SyncResult{Actions: []runtime.Action{{Kind: runtime.StartContainer, Target: "db"}, failed}}.Err()
	action, ok := errors.AsType[*runtime.ActionError](err)
	require.True(t, ok)
	assert.Equal(t, failed, action.Action)
	assert.Same(t, fs.ErrNotExist, errors.Unwrap(action))
}

// The names of actions are the kubelet's (rt-73), and are part of its error
// messages.
func TestActionsHaveTheNamesOfTheKubelet(t *testing.T) {
	for kind, want := range map[runtime.ActionKind]string{
		runtime.StartContainer: "StartContainer", runtime.KillContainer: "KillContainer", runtime.InitContainer: "InitContainer",
		runtime.CreatePodSandbox: "CreatePodSandbox", runtime.ConfigPodSandbox: "ConfigPodSandbox", runtime.KillPodSandbox: "KillPodSandbox",
		runtime.ResizePodInPlace: "ResizePodInPlace", runtime.RemoveContainer: "RemoveContainer",
	} {
		assert.Equal(t, want, string(kind))
	}
}

func TestPostponedActionsAreThoseInBackOff(t *testing.T) {
	failed := errors.New("no")
	for reason, want := range map[string]bool{"CrashLoopBackOff": true, "ImagePullBackOff": true, "ErrImagePull": false, "": false} {
		assert.Equal(t, want, runtime.Action{Kind: runtime.StartContainer, Err: failed, Reason: reason}.Postponed(), reason)
	}
	assert.False(t, runtime.Action{Reason: "CrashLoopBackOff"}.Postponed(), "it did not fail")
}
