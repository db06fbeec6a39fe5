package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

func TestAPlanCanBeMarshaled(t *testing.T) {
	s := newModel(t, `
		init proxy policy=Always cpu=2
		container web liveness=5
		container log
		ephemeral debug
		sandbox s0
		has proxy#0 running cpu=1
		has log#2 exited=1 ran=-5..0
		has web#0 running dead`)
	text, err := json.MarshalIndent(s.plan(), "", "  ")
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"sandboxID": "s0",
		"kill": [{
			"kind": "regular", "name": "web", "id": "web-0", "reason": "LivenessProbe",
			"message": "Container web failed liveness probe, will be restarted", "gracePeriodSeconds": 5
		}],
		"replaced": [{"name": "web", "id": "web-0"}],
		"start": [{
			"kind": "ephemeral", "name": "debug", "reason": "New", "why": "it has not run yet", "restartCount": 0, "noStatus": true
		}, {
			"kind": "regular", "name": "web", "reason": "LivenessProbe", "why": "it failed its liveness probe", "restartCount": 1
		}, {
			"kind": "regular", "name": "log", "reason": "Exited", "why": "it exited with 1, restart policy Always", "restartCount": 3,
			"notBefore": "2026-01-01T00:00:20Z", "delay": 20000000000
		}],
		"resize": [{
			"kind": "init", "name": "proxy", "id": "proxy-0", "why": "cpu request from 1 to 2",
			"from": {"requests": {"cpu": "1"}}, "to": {"requests": {"cpu": "2"}}
		}]
	}`, string(text))

	text, err = json.Marshal(newModel(t, "container web\nrestore /c").plan())
	require.NoError(t, err)
	assert.JSONEq(t, `{"createSandbox": true, "restore": "/c", "start": [{
		"kind": "regular", "name": "web", "reason": "Restored", "why": "its process continues from the checkpoint", "restartCount": 0, "noStatus": true
	}]}`, string(text))

	text, err = json.Marshal(plan.Plan{})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(text))
	require.EqualError(t, json.Unmarshal([]byte(`{"kill":[{"kind":"best"}]}`), new(plan.Plan)), `plan: unknown kind of container "best"`)
}
