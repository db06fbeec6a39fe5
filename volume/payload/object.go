package payload

import (
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/atomic"
)

// defaultMode is that of files of which nobody says otherwise, as the API server
// fills it in.
const defaultMode fs.FileMode = 0o644

// ConfigMap returns the files of a ConfigMap, of its data and its binary data: all
// keys, or those that items select, under their paths. A selected key that doesn't
// exist is an error, unless optional (vol-51). A nil cm has no keys.
func ConfigMap(cm *v1.ConfigMap, items []v1.KeyToPath, mode *int32, optional bool) (atomic.Payload, error) {
	data := map[string][]byte{}
	if cm != nil {
		for key, value := range cm.BinaryData {
			data[key] = value
		}
		for key, value := range cm.Data {
			data[key] = []byte(value)
		}
	}
	return object(data, items, mode, optional, "configmap references non-existent config key: %s")
}

// Secret returns the files of a Secret, as [ConfigMap] does (vol-52).
func Secret(secret *v1.Secret, items []v1.KeyToPath, mode *int32, optional bool) (atomic.Payload, error) {
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	return object(data, items, mode, optional, "references non-existent secret key: %s")
}

func object(data map[string][]byte, items []v1.KeyToPath, mode *int32, optional bool, missing string) (atomic.Payload, error) {
	files := atomic.Payload{}
	if len(items) == 0 {
		for key, value := range data {
			files[key] = atomic.File{Data: value, Mode: modeOf(mode, nil)}
		}
		return files, nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		switch {
		case ok:
			files[item.Path] = atomic.File{Data: value, Mode: modeOf(mode, item.Mode)}
		case !optional:
			return nil, fmt.Errorf(missing, item.Key)
		}
	}
	return files, nil
}

// modeOf is a file's mode: its own, else the volume's, else the API's default.
func modeOf(volume, own *int32) fs.FileMode {
	switch {
	case own != nil:
		return fs.FileMode(*own).Perm()
	case volume != nil:
		return fs.FileMode(*volume).Perm()
	}
	return defaultMode
}
