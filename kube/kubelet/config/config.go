package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxFile is the largest size of a file, in bytes. A complete KubeletConfiguration has a
// few kilobytes.
const maxFile = 1 << 20

// maxDuplicates is the largest size of the warning about duplicate fields, in bytes.
const maxDuplicates = 1 << 10

// Read returns the KubeletConfiguration in file, merged with the files *.conf in and below
// the directory dropIns, with defaults. Both are YAML or JSON, and either may be empty; the
// result is then the default configuration. Relative paths in file are below its directory.
// The warnings name unknown and duplicate fields, which are ignored except the last duplicate,
// and fields and feature gates that have no effect.
//
// It returns an error that names the file, and the field if there is one, if a file
// cannot be read, has a value of another type, or sets a field that is refused. [Validate]
// checks the values.
func Read(file, dropIns string) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	r := reader{object: map[string]any{}}
	return r.read(file, dropIns)
}

// ReadStrict is Read, except that unknown and duplicate fields are errors.
func ReadStrict(file, dropIns string) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	r := reader{object: map[string]any{}, strict: true}
	return r.read(file, dropIns)
}

// Decode is Read for a configuration in memory, whose paths remain as they are.
func Decode(text []byte) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	object, warnings, err := decodeObject(text)
	if err != nil {
		return nil, nil, err
	}
	cfg, more, err := fromObject(object)
	return cfg, append(warnings, more...), err
}

// Default sets the fields of cfg that have their zero value to their defaults.
func Default(cfg *kubeletconfig.KubeletConfiguration) {
	if cfg.NodeStatusReportFrequency.Duration == 0 {
		cfg.NodeStatusReportFrequency = cfg.NodeStatusUpdateFrequency // as in the kubelet, if only that is set
	}
	for f := range fields {
		f.fill(cfg, f.def)
	}
}

func fromObject(object map[string]any) (*kubeletconfig.KubeletConfiguration, []string, error) {
	cfg := new(kubeletconfig.KubeletConfiguration)
	text, err := json.Marshal(object)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	warnings, err := check(cfg, object)
	if err != nil {
		return nil, nil, err
	}
	Default(cfg)
	return cfg, warnings, nil
}

// A reader merges files into an object.
type reader struct {
	strict   bool
	object   map[string]any
	warnings []string
}

func (r *reader) read(file, dropIns string) (*kubeletconfig.KubeletConfiguration, []string, error) {
	if file != "" {
		object, err := r.readObject(file)
		if err == nil {
			err = resolvePaths(object, file)
		}
		if err != nil {
			return nil, nil, err
		}
		r.object = object
	}
	if dropIns != "" {
		if err := r.mergeDir(dropIns); err != nil {
			return nil, nil, err
		}
	}
	cfg, warnings, err := fromObject(r.object)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cmp.Or(file, dropIns), err)
	}
	return cfg, append(r.warnings, warnings...), nil
}

// readObject reads one file, which must be regular or a link to a regular file: opening
// a FIFO would block.
func (r *reader) readObject(path string) (map[string]any, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	var object map[string]any
	var warnings []string
	if err == nil {
		object, warnings, err = decodeObject(text)
	}
	if err == nil && r.strict && len(warnings) > 0 {
		err = errors.New(strings.Join(warnings, "; "))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, w := range warnings {
		r.warnings = append(r.warnings, path+": "+w)
	}
	return object, nil
}

// decodeObject returns the fields that text sets, after it has checked the types of those
// of a KubeletConfiguration. The warnings are about its other fields, and about
// duplicates.
func decodeObject(text []byte) (object map[string]any, warnings []string, err error) {
	encoded, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		duplicate := err
		if encoded, err = yaml.YAMLToJSON(text); err != nil {
			return nil, nil, err
		}
		text := strings.Join(strings.Fields(duplicate.Error()), " ")
		warnings = append(warnings, "duplicate field, the last one is used: "+text[:min(len(text), maxDuplicates)])
	}
	var cfg kubeletconfig.KubeletConfiguration
	strict, err := kjson.UnmarshalStrict(encoded, &cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to decode: %w", err)
	}
	for _, err := range strict {
		warnings = append(warnings, err.Error()+" is ignored")
	}
	if cfg.Kind != "KubeletConfiguration" || cfg.APIVersion != kubeletconfig.SchemeGroupVersion.String() {
		return nil, nil, fmt.Errorf("apiVersion %q, kind %q: want %s, KubeletConfiguration", cfg.APIVersion, cfg.Kind, kubeletconfig.SchemeGroupVersion)
	}
	object = map[string]any{}
	return object, warnings, kjson.UnmarshalCaseSensitivePreserveInts(encoded, &object)
}

// pathFields are the fields whose relative paths are below the directory of the file.
var pathFields = []string{"staticPodPath", "authentication.x509.clientCAFile", "tlsCertFile", "tlsPrivateKeyFile", "resolvConf", "volumePluginDir", "podLogsDir"}

// resolvePaths makes the paths of an object absolute. Empty paths remain empty.
func resolvePaths(object map[string]any, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	for _, name := range pathFields {
		at, parts := object, strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			at, _ = at[part].(map[string]any) // a read of a nil map returns nil
		}
		last := parts[len(parts)-1]
		if path, _ := at[last].(string); path != "" && !filepath.IsAbs(path) {
			at[last] = filepath.Join(filepath.Dir(file), path)
		}
	}
	return nil
}

// mergeDir merges the files *.conf of a directory and of those below it, in the order of
// their paths.
func (r *reader) mergeDir(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".conf" {
			return err
		}
		object, err := r.readObject(path)
		if err == nil {
			merge(r.object, object)
		}
		return err
	})
}

// merge is a JSON merge patch (RFC 7386).
func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		old, wasObject := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject && wasObject:
			merge(old, below)
		default:
			into[key] = value
		}
	}
}
