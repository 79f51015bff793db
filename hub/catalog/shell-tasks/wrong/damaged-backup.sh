mkdir restored; cat north/backup.tar.* | tar -xf - -C restored
