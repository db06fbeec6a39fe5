package payload

import (
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/atomic"
)

// Defaults are a volume's settings for files that have none of their own. The zero value is mode 0644
// and the user of the process.
type Defaults struct {
	Mode *int32 // permission bits
	User *int64 // UID of the owner
}

// defaultMode is the API server's default.
const defaultMode fs.FileMode = 0o644

// ConfigMap returns the files of the data and binary data of a ConfigMap: of all keys, or of the keys
// that items select, with the paths of the items. It returns an error if a selected key does not exist,
// unless optional is true. A nil cm has no keys.
func ConfigMap(cm *v1.ConfigMap, items []v1.KeyToPath, of Defaults, optional bool) (atomic.Payload, error) {
	data := map[string][]byte{}
	if cm != nil {
		for key, value := range cm.BinaryData {
			data[key] = value
		}
		for key, value := range cm.Data {
			data[key] = []byte(value)
		}
	}
	return object(data, items, of, optional, "configmap references non-existent config key: %s")
}

// Secret returns the files of a Secret, as [ConfigMap] does.
func Secret(secret *v1.Secret, items []v1.KeyToPath, of Defaults, optional bool) (atomic.Payload, error) {
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	return object(data, items, of, optional, "references non-existent secret key: %s")
}

func object(data map[string][]byte, items []v1.KeyToPath, of Defaults, optional bool, missing string) (atomic.Payload, error) {
	files := atomic.Payload{}
	if len(items) == 0 {
		for key, value := range data {
			files[key] = of.file(value, nil, nil)
		}
		return files, nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		switch {
		case ok:
			files[item.Path] = of.file(value, item.Mode, item.User)
		case !optional:
			return nil, fmt.Errorf(missing, item.Key)
		}
	}
	return files, nil
}

// file returns a file with its own mode and owner or else the defaults.
func (d Defaults) file(data []byte, mode *int32, user *int64) atomic.File {
	f := atomic.File{Data: data, Mode: defaultMode, UID: user}
	if f.UID == nil {
		f.UID = d.User
	}
	switch {
	case mode != nil:
		f.Mode = fs.FileMode(*mode).Perm()
	case d.Mode != nil:
		f.Mode = fs.FileMode(*d.Mode).Perm()
	}
	return f
}
