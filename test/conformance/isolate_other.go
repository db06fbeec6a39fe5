//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func isolated() bool { return false }

func isolate(context.Context, io.Writer) (int, error) { return 0, errors.ErrUnsupported }

func ownMachineDirs(string) error { return errors.ErrUnsupported }

func removeMachineDirs() error { return nil }
