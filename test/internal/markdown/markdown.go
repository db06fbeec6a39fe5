// Package markdown contains what the subcommands of this module have in common when they write a report in Markdown.
package markdown

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Cell escapes text for a cell of a table.
func Cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "_", `\_`, "\n", " ").Replace(text)
}

// Machine describes this program and machine, such as "go1.26 on linux/amd64 with 2 processors".
func Machine() string {
	return fmt.Sprintf("%s on %s/%s with %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

// Write writes a report to a file and prints its name; it does nothing if file is empty.
func Write(file, text string, printf func(string, ...any)) error {
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	printf("the report is in %s", file)
	return nil
}
