package objectdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// maxFile bounds the size of a file in bytes. base64 and quoting enlarge 1 MiB of data.
const maxFile = 8 << 20

// A key identifies an object.
type key struct{ kind, namespace, name string }

// A found is the result of reading one path of the directory: its objects or an error.
type found struct {
	path    string
	objects map[key]any // *v1.ConfigMap or *v1.Secret
	err     error
}

// readDir reads a directory. Names that begin with "." are ignored. A directory that does not exist is
// empty.
func readDir(dir string) ([]found, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []found
	for _, e := range entries {
		name := e.Name()
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case strings.HasPrefix(name, "."), errors.Is(err, fs.ErrNotExist):
		case err != nil:
			all = append(all, found{path: path, err: err})
		case info.IsDir() && (name == "configmaps" || name == "secrets"):
			all = append(all, readForm(path, name)...)
		case info.IsDir():
			all = append(all, found{path: path, err: errors.New(`objectdir: directory is neither "configmaps" nor "secrets"`)})
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			all = append(all, manifest(path))
		}
	}
	return all, nil
}

func manifest(path string) found {
	f := found{path: path, objects: map[key]any{}}
	data, err := readFile(path)
	if err != nil {
		f.err = err
		return f
	}
	configMaps, secrets, err := Decode(data)
	for _, cm := range configMaps {
		k := key{configMap, cm.Namespace, cm.Name}
		if f.objects[k] != nil {
			err = fmt.Errorf("objectdir: duplicate %s", k)
		}
		f.objects[k] = cm
	}
	for _, s := range secrets {
		k := key{secret, s.Namespace, s.Name}
		if f.objects[k] != nil {
			err = fmt.Errorf("objectdir: duplicate %s", k)
		}
		f.objects[k] = s
	}
	f.err = err
	return f
}

// readForm reads the objects below the directory of a kind.
func readForm(dir, form string) []found {
	var all []found
	eachDir(dir, func(namespace, path string, err error) {
		if err != nil {
			all = append(all, found{path: path, err: err})
			return
		}
		eachDir(path, func(name, path string, err error) {
			f := found{path: path, err: err}
			if err == nil {
				f = object(path, form, namespace, name)
			}
			all = append(all, f)
		})
	})
	return all
}

func eachDir(dir string, do func(name, path string, err error)) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		do("", dir, err)
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = errors.New("objectdir: not a directory; the format is KIND/NAMESPACE/NAME/KEY")
		}
		do(e.Name(), path, err)
	}
}

// object reads the object whose keys are the files of a directory.
func object(dir, form, namespace, name string) found {
	f := found{path: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.err = err
		return f
	}
	data := map[string][]byte{}
	size := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") { // of volume/atomic
			continue
		}
		value, err := readFile(filepath.Join(dir, e.Name()))
		if err != nil {
			f.err = err
			return f
		}
		if size += len(value); size > maxData {
			f.err = fmt.Errorf("objectdir: data: Too long: may not be more than %d bytes", maxData)
			return f
		}
		data[e.Name()] = value
	}
	if form == "secrets" {
		s := &v1.Secret{Data: data}
		s.Namespace, s.Name = namespace, name
		f.err = complete(&s.ObjectMeta, nil, s.Data)
		f.objects = map[key]any{{secret, namespace, name}: s}
	} else {
		cm := &v1.ConfigMap{BinaryData: data}
		cm.Namespace, cm.Name = namespace, name
		f.err = complete(&cm.ObjectMeta, nil, cm.BinaryData)
		cm.Data, cm.BinaryData = split(data)
		f.objects = map[key]any{{configMap, namespace, name}: cm}
	}
	if f.err != nil {
		f.err = fmt.Errorf("objectdir: %w", f.err)
	}
	return f
}

// readFile reads a regular file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	data, err := untrusted.ReadFollow(path, maxFile)
	if err != nil {
		err = fmt.Errorf("objectdir: %w", err)
	}
	return data, err
}
