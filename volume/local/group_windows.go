package local

// groupOf: there are no such groups here.
func groupOf(string) (gid int64, ok bool) { return 0, false }
