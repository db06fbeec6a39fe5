package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// A license is the license of a module.
type license struct {
	id   string // of SPDX; NOASSERTION if the text is not one of those that identify detects
	text string
}

var licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([.\-_].*)?$`)

// licenseOf reads the license files of a module.
func licenseOf(dir string) (license, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return license{}, err
	}
	l := license{id: "NOASSERTION"}
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return l, err
		}
		if id := identify(string(text)); id != "" && l.id == "NOASSERTION" {
			l.id = id
		}
		l.text += strings.TrimSpace(string(text)) + "\n\n"
	}
	if l.text == "" {
		return l, fmt.Errorf("no license file in %s", dir)
	}
	return l, nil
}

// phrases identify the usual licenses.
var phrases = []struct{ id, phrase string }{
	{"Apache-2.0", "apache license version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"MPL-2.0", "mozilla public license, version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"BSD", "redistribution and use in source and binary forms"},
}

// endorsement is the third clause of the BSD license, which has several wordings.
var endorsement = regexp.MustCompile(`neither the names? |may not be used to endorse|be used to endorse or promote`)

// identify returns the SPDX expression of the licenses in a text; "" if it contains none of the
// usual ones.
func identify(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var ids []string
	for _, l := range phrases {
		if !strings.Contains(text, l.phrase) {
			continue
		}
		if l.id == "BSD" {
			l.id = "BSD-2-Clause"
			if endorsement.MatchString(text) {
				l.id = "BSD-3-Clause"
			}
		}
		ids = append(ids, l.id)
	}
	return strings.Join(slices.Compact(ids), " AND ")
}

// licenses collects the licenses of modules, each once.
type licenses struct {
	toolchain *toolchain
	read      map[string]license // by path@version
}

// of returns the license of each module of a program, and their texts in one file.
func (l *licenses) of(ctx context.Context, info *debug.BuildInfo) (map[string]license, []byte, error) {
	found := map[string]license{}
	var text strings.Builder
	text.WriteString("This program contains the modules below, under the licenses that follow each.\n")
	for _, m := range dependencies(info) {
		name := m.Path + "@" + m.Version
		if _, ok := l.read[name]; !ok {
			dir, err := l.toolchain.moduleDir(ctx, m.Path, m.Version)
			if err != nil {
				return nil, nil, err
			}
			if l.read[name], err = licenseOf(dir); err != nil && !strings.HasPrefix(m.Path, root) {
				return nil, nil, fmt.Errorf("license of %s: %w", name, err)
			}
		}
		found[name] = l.read[name]
		if !strings.HasPrefix(m.Path, root) {
			fmt.Fprintf(&text, "\n%s\n%s\n\n%s", strings.Repeat("=", 80), name, found[name].text)
		}
	}
	return found, []byte(text.String()), nil
}

// dependencies returns the modules of a program besides the main one, with replacements applied.
func dependencies(info *debug.BuildInfo) []debug.Module {
	var modules []debug.Module
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, *m)
	}
	slices.SortFunc(modules, func(a, b debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return modules
}

// downloaded returns the directory that `go mod download -json` prints.
func downloaded(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	var result struct{ Dir, Error string }
	if parsed := json.Unmarshal(out, &result); parsed != nil || result.Error != "" || err != nil {
		return "", fmt.Errorf("go mod download %s: %v %s", cmd.Args[len(cmd.Args)-1], err, result.Error)
	}
	return result.Dir, nil
}
