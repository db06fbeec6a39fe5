package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A checksum is the SHA-256 of a file of the release.
type checksum struct{ name, sum string }

// checksums returns the checksums of the files of a directory in the order of their names.
func checksums(dir string) ([]checksum, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sums []checksum
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		sums = append(sums, checksum{e.Name(), hex.EncodeToString(hash.Sum(nil))})
	}
	return sums, nil
}

// sumFile is the format that sha256sum --check reads.
func sumFile(sums []checksum) string {
	var text strings.Builder
	for _, c := range sums {
		fmt.Fprintf(&text, "%s  %s\n", c.sum, c.name)
	}
	return text.String()
}
