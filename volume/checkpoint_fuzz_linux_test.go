package volume_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// Whatever a checkpoint contains, no path outside its pod's directory results from it.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"place":{"podUID":"p","plugin":"example.com/fake","name":"data"},"pod":"default/p","spec":{"volume":{"name":"data"}}}`))
	f.Add([]byte(`{"version":1,"place":{"podUID":"p","plugin":"example.com/fake","name":"../../q"},"spec":{}}`))
	f.Add([]byte(`{"version":1,"place":{"podUID":"q","plugin":"example.com/fake","name":"data"},"spec":{"pv":{}}}`))
	f.Add([]byte(`{"version":1,"plugin":"example.com/fake","device":"d","spec":{"block":true}}`))
	f.Add([]byte(`{"version":2`))
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		other := filepath.Join(root, "pods", "q", "volumes", "example.com~fake", "data", "file")
		write(t, other)
		for _, dir := range []string{"pods/p", "plugins/kubeparts.io~volumes"} {
			path := filepath.Join(root, dir, "volume-x.json")
			write(t, path)
			if json.Valid(data) {
				require.NoError(t, checkpoint.Write(path, json.RawMessage(data)))
			} else {
				require.NoError(t, os.WriteFile(path, data, 0o600))
			}
		}
		m, err := volume.New(volume.Config{RootDir: root, Plugins: []volume.Plugin{staged()}, Mounter: new(volumetest.Mounter)})
		require.NoError(t, err)
		m.Reconstruct()
		require.FileExists(t, other)
	})
}
