"""Programs judged by 2, 8 or 32 tests (document 002): how exact must a reward be?"""
