// Package cli contains the subcommands of the program of this module, their flags and progress messages.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Parse reads flags. With --help it writes usage, which ends with a newline, and the flags to out and returns
// flag.ErrHelp. It returns an error for unknown flags and for arguments, and prints nothing.
func Parse(fs *flag.FlagSet, args []string, usage string, out io.Writer) error {
	if err := ParseFlags(fs, args, usage, out); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	return nil
}

// ParseFlags is Parse for a command that has arguments after the flags.
func ParseFlags(fs *flag.FlagSet, args []string, usage string, out io.Writer) error {
	fs.Usage = func() {}
	fs.SetOutput(io.Discard)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(out)
		fmt.Fprint(out, usage, "\nFlags:\n")
		fs.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	}
	return nil
}
