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

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxFile is the largest size of a file, in bytes. A complete KubeletConfiguration has a
// few kilobytes.
const maxFile = 1 << 20

// Read returns the KubeletConfiguration in file, merged with the files *.conf in and below
// the directory dropIns, with defaults. Both are YAML or JSON, and either may be empty; the
// result is then the default configuration. The warnings name the fields and feature
// gates that have no effect.
//
// It returns an error that names the file, and the field if there is one, if a file
// cannot be read, has unknown or duplicate fields, or sets a field that is Refused.
func Read(file, dropIns string) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	merged := map[string]any{}
	if file != "" {
		if merged, err = readObject(file); err != nil {
			return nil, nil, err
		}
	}
	if dropIns != "" {
		if err := mergeDir(merged, dropIns); err != nil {
			return nil, nil, err
		}
	}
	if cfg, warnings, err = fromObject(merged); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cmp.Or(file, dropIns), err)
	}
	return cfg, warnings, nil
}

// Decode is Read for a configuration in memory.
func Decode(text []byte) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	object, err := decodeObject(text)
	if err != nil {
		return nil, nil, err
	}
	return fromObject(object)
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
		err = json.Unmarshal(text, cfg)
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

// readObject reads one file, which must be regular or a link to a regular file: opening
// a FIFO would block.
func readObject(path string) (map[string]any, error) {
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
	if err == nil {
		object, err = decodeObject(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}

// decodeObject returns the fields that text sets, after it has checked that they are
// fields of a KubeletConfiguration.
func decodeObject(text []byte) (map[string]any, error) {
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var cfg kubeletconfig.KubeletConfiguration
	strict, err := kjson.UnmarshalStrict(object, &cfg)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if cfg.Kind != "KubeletConfiguration" || cfg.APIVersion != kubeletconfig.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q, kind %q: want %s, KubeletConfiguration", cfg.APIVersion, cfg.Kind, kubeletconfig.SchemeGroupVersion)
	}
	fields := map[string]any{}
	return fields, kjson.UnmarshalCaseSensitivePreserveInts(object, &fields)
}

// mergeDir merges the files *.conf of a directory and of those below it into a
// configuration, in the order of their paths.
func mergeDir(into map[string]any, dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".conf" {
			return err
		}
		object, err := readObject(path)
		if err == nil {
			merge(into, object)
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
