package labenv_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

func TestTheFieldsOfAKubeletConfigReplaceTheCommonOnes(t *testing.T) {
	text, err := labenv.KubeletConfig(map[string]any{"cgroupDriver": "systemd", "maxPods": 7})
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(text, &config))
	assert.Equal(t, "KubeletConfiguration", config["kind"])
	assert.Equal(t, "systemd", config["cgroupDriver"])
	assert.EqualValues(t, 7, config["maxPods"])
}
